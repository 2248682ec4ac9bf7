import { isLoopback, parseAddress } from '../../shared/network/addresses.js';
import { SetupError } from '../../shared/coded-error.js';

export const MAIL_SETTINGS = [
  'GPURENT_SMTP_SERVER',
  'GPURENT_SMTP_TLS',
  'GPURENT_SMTP_USER',
  'GPURENT_SMTP_PASSWORD_FILE',
  'GPURENT_SMTP_CA_FILE',
  'GPURENT_MAIL_FROM',
] as const;

/** Reads settings of mail. */
export interface MailSettingsReader {
  optional(name: (typeof MAIL_SETTINGS)[number]): string | undefined;
  /** Returns the text of the file that the setting names. Throws SetupError. */
  file(name: (typeof MAIL_SETTINGS)[number]): string;
}

/** `starttls`: plain text at first, then TLS, or nothing is sent. `implicit`: TLS from the first byte. `off`: for loopback alone. */
export type SmtpTls = 'starttls' | 'implicit' | 'off';

/** The port on which servers use TLS from the first byte. */
const IMPLICIT_PORT = 465;

export interface SmtpSettings {
  host: string;
  port: number;
  tls: SmtpTls;
  /** Null: the server needs no login. */
  login: { user: string; password: string } | null;
  /** The certificates of the server's authority in PEM; null: those that Node knows. */
  authority: string | null;
  from: { name: string; address: string };
}

/**
 * Reads the settings of mail; undefined: no mail server is named, so no mail is sent. Throws SetupError for a missing or bad setting.
 * `publicUrl` is the address for links.
 */
export function mailSettings(settings: MailSettingsReader, publicUrl: string | undefined): SmtpSettings | undefined {
  const server = settings.optional('GPURENT_SMTP_SERVER');
  if (server === undefined) {
    const set = MAIL_SETTINGS.find((name) => settings.optional(name) !== undefined);
    if (set !== undefined)
      throw new SetupError(`${set} is set, but not GPURENT_SMTP_SERVER: without it, no mail is sent`);
    return undefined;
  }
  if (publicUrl === undefined)
    throw new SetupError('GPURENT_SMTP_SERVER needs GPURENT_PUBLIC_URL, because mails contain links to it');
  const { host, port } = parseAddress('GPURENT_SMTP_SERVER', server);
  return {
    host,
    port,
    tls: tlsOf(settings.optional('GPURENT_SMTP_TLS') ?? 'auto', host, port),
    login: loginOf(settings),
    authority: settings.optional('GPURENT_SMTP_CA_FILE') === undefined ? null : settings.file('GPURENT_SMTP_CA_FILE'),
    from: senderOf(settings.optional('GPURENT_MAIL_FROM')),
  };
}

function tlsOf(value: string, host: string, port: number): SmtpTls {
  switch (value) {
    case 'auto':
      if (isLoopback(host)) return 'off';
      return port === IMPLICIT_PORT ? 'implicit' : 'starttls';
    case 'starttls':
    case 'implicit':
      return value;
    case 'off':
      if (isLoopback(host)) return 'off';
      throw new SetupError('GPURENT_SMTP_TLS is "off", which is only for a mail server on loopback');
    default:
      throw new SetupError(
        `GPURENT_SMTP_TLS is "${value}"; give auto (no TLS on loopback, implicit on port 465, otherwise starttls), starttls, implicit or off`,
      );
  }
}

function loginOf(settings: MailSettingsReader): SmtpSettings['login'] {
  const user = settings.optional('GPURENT_SMTP_USER');
  const file = settings.optional('GPURENT_SMTP_PASSWORD_FILE');
  if (user === undefined && file === undefined) return null;
  if (user === undefined || file === undefined)
    throw new SetupError('give both GPURENT_SMTP_USER and GPURENT_SMTP_PASSWORD_FILE, or neither');
  return { user, password: settings.file('GPURENT_SMTP_PASSWORD_FILE') };
}

const SENDER = /^(?:([^<>"@\\,;:\p{Cc}]+?) ?<)?([a-z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)*)(>)?$/iu;

function senderOf(value: string | undefined): SmtpSettings['from'] {
  if (value === undefined) throw new SetupError('GPURENT_SMTP_SERVER needs GPURENT_MAIL_FROM, the sender of the mails');
  const [, name, address, end] = SENDER.exec(value.trim()) ?? [];
  if (address === undefined || (name === undefined) !== (end === undefined))
    throw new SetupError(
      `GPURENT_MAIL_FROM is "${value}"; give an address, or a name and the address in angle brackets`,
    );
  return { name: name?.trim() ?? '', address };
}
