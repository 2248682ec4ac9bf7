import { systemClock } from '../../shared/clock.js';
import { SetupError } from '../../shared/coded-error.js';
import { randomIds } from '../../shared/ids.js';
import type { SmtpSettings } from './settings.js';
import { SmtpTransport } from './smtp.js';

/**
 * Sends one mail to this address. Returns what the mail server said. Throws SetupError without settings, and with what went wrong when the
 * server has not accepted the mail.
 */
export async function sendTestMail(
  settings: SmtpSettings | undefined,
  publicUrl: string | undefined,
  to: string,
): Promise<string> {
  if (!settings) throw new SetupError('no mail server is set: give GPURENT_SMTP_SERVER and GPURENT_MAIL_FROM');
  if (!/^[^@\s<>",]+@[^@\s<>",]+$/.test(to)) throw new SetupError(`"${to}" is not an e-mail address`);
  const transport = new SmtpTransport(settings, systemClock);
  const says = `This is a test: the GPU marketplace at ${publicUrl ?? ''} can send mails.`;
  const { outcome, answer } = await transport.send({
    id: randomIds.uuid(),
    to,
    subject: 'A test of the mail settings',
    text: `${says}\n`,
    html: `<p>${says}</p>\n`,
    createdAt: systemClock.now(),
    unsubscribeUrl: null,
  });
  transport.close();
  const server = `${settings.host}:${settings.port}`;
  if (outcome !== 'sent') throw new SetupError(`${server} has not accepted the mail: ${answer}`);
  return `${server} has accepted the mail: ${answer}`;
}
