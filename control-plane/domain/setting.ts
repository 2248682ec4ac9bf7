/** A setting of the control plane, as operators see it. */
export interface Setting {
  name: string;
  /** The value that counts; null: it is not shown, or it is not set and has no default. */
  value: string | null;
  /** Whether somebody has set it. */
  is_set: boolean;
  /** Whether what counts is the default. */
  is_default: boolean;
  /** Whether its value is shown. */
  is_shown: boolean;
}

/**
 * The settings whose values are shown. A setting that is not named here only says whether it is set: nobody can forget to hide a new one. Not
 * here: files with secrets, the user at the mail server (with some providers it is the password), and addresses that could have a token.
 */
export const SHOWN_SETTINGS: readonly string[] = [
  'GPURENT_ABUSE_EMAIL',
  'GPURENT_ABUSE_URL',
  'GPURENT_AUDIT_STDOUT',
  'GPURENT_BACKUP_EVERY_HOURS',
  'GPURENT_BACKUP_FOLDER',
  'GPURENT_BACKUP_KEEP',
  'GPURENT_CONFIG',
  'GPURENT_DATABASE',
  'GPURENT_DESTROY_ERRORS_AFTER_HOURS',
  'GPURENT_GRPC_ADDRESS',
  'GPURENT_GRPC_TLS',
  'GPURENT_HOST_RELEASE',
  'GPURENT_HTTP_ADDRESS',
  'GPURENT_HTTP_TLS',
  'GPURENT_LITESTREAM',
  'GPURENT_LOG_FORMAT',
  'GPURENT_LOG_LEVEL',
  'GPURENT_MAIL_FROM',
  'GPURENT_OPERATORS_NEED_SECOND_FACTOR',
  'GPURENT_PAYMENTS',
  'GPURENT_PUBLIC_GRPC_ADDRESS',
  'GPURENT_PUBLIC_URL',
  'GPURENT_RATE_LIMIT_ADDRESS',
  'GPURENT_RATE_LIMIT_ATTEMPTS_ACCOUNT',
  'GPURENT_RATE_LIMIT_ATTEMPTS_ADDRESS',
  'GPURENT_RATE_LIMIT_CREDENTIAL',
  'GPURENT_SIGN_UP',
  'GPURENT_SMTP_CA_FILE',
  'GPURENT_SMTP_SERVER',
  'GPURENT_SMTP_TLS',
  'GPURENT_TLS_CERTIFICATE_FILE',
  'GPURENT_TLS_NAMES',
  'GPURENT_WEBHOOK_NETWORKS',
];

type Values = Readonly<Record<string, string | undefined>>;

/** Describes settings, by name. An empty value counts as not set. */
export function describeSettings(names: Iterable<string>, environment: Values, defaults: Values): Setting[] {
  return [...names].sort().map((name) => {
    const [given, byDefault] = [environment[name] || null, defaults[name] || null];
    const fact = { name, is_set: given !== null };
    if (!SHOWN_SETTINGS.includes(name)) return { ...fact, value: null, is_default: !fact.is_set, is_shown: false };
    const value = given ?? byDefault;
    return { ...fact, value, is_default: value === byDefault, is_shown: true };
  });
}
