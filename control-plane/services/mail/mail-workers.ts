import type { Logger } from '../../../shared/logger.js';
import type { Platform } from '../system/platform.js';
import { mailMakerOf } from './event-mails.js';
import { MailSender } from './send-mails.js';

/** The workers that make mails of events, and send mails; `stop` waits a few seconds for those that are on their way. */
export interface MailWorkers {
  make: () => Record<string, number>;
  send: () => Record<string, number>;
  stop: () => Promise<void>;
}

/** Makes the workers for mails. Without a mail server they do nothing. */
export function mailWorkersOf(platform: Platform, logger: Logger): MailWorkers {
  if (!platform.mail) return { make: () => ({}), send: () => ({}), stop: async () => {} };
  const sender = new MailSender(platform, platform.mail, logger);
  return { make: mailMakerOf(platform), send: sender.run, stop: () => sender.stop() };
}
