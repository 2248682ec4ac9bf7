import { SetupError } from '../../shared/coded-error.js';

export const AUDIT_WEBHOOK_SETTINGS = [
  'GPURENT_AUDIT_WEBHOOK_URL',
  'GPURENT_AUDIT_WEBHOOK_SECRET',
  'GPURENT_AUDIT_WEBHOOK_SECRET_FILE',
] as const;
type Name = (typeof AUDIT_WEBHOOK_SETTINGS)[number];

/** Reads settings of the webhook for audit lines. Each throws SetupError. */
export interface AuditSettingsReader {
  optional(name: Name): string | undefined;
  /** Returns the text of the file that the setting names. */
  file(name: Name): string;
  /** Returns an address that uses https, or plain http on loopback. */
  webAddress(name: Name): string;
}

/** A signature needs a secret of so many bytes, says the Standard Webhooks specification. */
const LEAST_BYTES = 24;
const MOST_BYTES = 64;

/**
 * Reads where audit lines are posted, and the secret that signs them; undefined: nowhere. Throws SetupError for a missing or bad setting,
 * without a secret or an address, which can have a token, in its words.
 */
export function auditWebhook(settings: AuditSettingsReader): { url: string; secret: string } | undefined {
  const [text, file] = [
    settings.optional('GPURENT_AUDIT_WEBHOOK_SECRET'),
    settings.optional('GPURENT_AUDIT_WEBHOOK_SECRET_FILE'),
  ];
  if (settings.optional('GPURENT_AUDIT_WEBHOOK_URL') === undefined) {
    if (text === undefined && file === undefined) return undefined;
    throw new SetupError(
      `${text === undefined ? 'GPURENT_AUDIT_WEBHOOK_SECRET_FILE' : 'GPURENT_AUDIT_WEBHOOK_SECRET'} is set, but not GPURENT_AUDIT_WEBHOOK_URL: without it, nothing is posted`,
    );
  }
  const url = new URL(settings.webAddress('GPURENT_AUDIT_WEBHOOK_URL'));
  if (url.username + url.password + url.hash !== '')
    throw new SetupError('GPURENT_AUDIT_WEBHOOK_URL has a user, a password or a fragment (#); give it without them');
  if ((text === undefined) === (file === undefined))
    throw new SetupError(
      'GPURENT_AUDIT_WEBHOOK_URL needs GPURENT_AUDIT_WEBHOOK_SECRET_FILE or GPURENT_AUDIT_WEBHOOK_SECRET, and not both',
    );
  const name = text === undefined ? 'GPURENT_AUDIT_WEBHOOK_SECRET_FILE' : 'GPURENT_AUDIT_WEBHOOK_SECRET';
  return { url: url.href, secret: checkSecret(name, text ?? settings.file(name)) };
}

function checkSecret(name: Name, secret: string): string {
  const [, coded = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret) ?? [];
  const { length } = Buffer.from(coded, 'base64');
  if (length >= LEAST_BYTES && length <= MOST_BYTES) return secret;
  throw new SetupError(
    `${name} has no signing secret: give whsec_ and the base64 of ${LEAST_BYTES} to ${MOST_BYTES} bytes, such as echo "whsec_$(openssl rand -base64 32)" prints`,
  );
}
