import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { RESERVE_BYTES } from './domain/disk-room.js';
import { describeSettings, type Setting } from './domain/setting.js';
import { SIGN_UP_MODES, type SignUpMode } from './domain/identity/sign-up.js';
import type { PaymentProvider } from './domain/money/payment.js';
import { AUDIT_WEBHOOK_SETTINGS, auditWebhook } from './outbound/audit-settings.js';
import { MAIL_SETTINGS, mailSettings, type SmtpSettings } from './mail/settings.js';
import { PROVIDER_SETTINGS, paymentProvider } from './payments/providers.js';
import { readSecretKey } from './secret-key.js';
import type { BackupPlan } from './store/scheduled-backups.js';
import { isLoopback, parseAddress } from '../shared/network/addresses.js';
import { SetupError, messageOf } from '../shared/coded-error.js';
import { LOG_LEVELS, parseLogFormat, type LogFormat } from '../shared/logger.js';
import { isNetwork } from '../shared/network/forbidden-networks.js';
import { certificateFiles, type CertificateFiles } from '../shared/network/server-identity.js';
import { unknownSettings } from '../shared/settings-file.js';
import { Settings } from '../shared/settings.js';
import { HOUR_MS } from '../shared/time.js';

/** Allowed requests: per minute for an address and a credential, per 15 minutes for attempts at a password. */
export interface RateLimits {
  perAddress: number;
  perCredential: number;
  attemptsPerAddress: number;
  attemptsPerAccount: number;
}

/** Which listeners use TLS, and with which certificate. */
export interface TlsSettings {
  http: boolean;
  grpc: boolean;
  /** The operator's certificate and its key; absent: the control plane's own authority issues one. */
  files?: CertificateFiles;
  /** The names in a certificate of its own authority, beside the name that hosts ask for. */
  names: string[];
}

export interface Config {
  /** `host:port` */
  httpAddress: string;
  /** `host:port` */
  grpcAddress: string;
  /** The SQLite file. */
  database: string;
  /** 32 bytes. */
  secretKey: Buffer;
  /** The file of the secret key; absent: the key has no file. */
  secretKeyFile?: string;
  logLevel: string;
  /** Null: text on a terminal, otherwise JSON. */
  logFormat: LogFormat | null;
  tls: TlsSettings;
  rateLimits: RateLimits;
  /** Who can create an account; absent: anybody. */
  signUp?: SignUpMode;
  /** Whether operators act only in sessions in which they have given a second factor; absent: no. */
  operatorsNeedFactor?: boolean;
  /** The address at which people reach this control plane, without a slash at its end; absent: links cannot be made. */
  publicUrl?: string;
  /** The address that hosts dial, `HOST:PORT`; absent: the operator has not named it. */
  publicGrpcAddress?: string;
  /** The release that hosts are given; absent: none. With it, there are a `publicUrl` and a `publicGrpcAddress`. */
  hostRelease?: string;
  /** Where abuse is to be reported; absent: the operator has named nothing. */
  abuse?: { email?: string; url?: string };
  /** Networks, private ones for example, that webhooks can reach although they are forbidden; absent: none. */
  webhookNetworks?: string[];
  /** Where audit lines go; absent: nowhere. `webhook`: the address, and the secret that signs. */
  auditOut?: { stdout: boolean; webhook?: { url: string; secret: string } };
  /** The mail server; absent: no mail is sent. With it, there is a `publicUrl`. */
  mail?: SmtpSettings;
  /** Opens the payment provider; absent: operators grant credit, and renters cannot pay here. */
  payments?: () => PaymentProvider;
  /** How much of the disk of the database is kept in reserve; absent: nothing. */
  reserveBytes?: number;
  /** Whether Litestream copies the database; absent: no. */
  litestream?: boolean;
  /** The scheduled backups; absent: none. */
  backups?: BackupPlan;
  /** Where the built console is; absent: the control plane serves none. */
  consoleFolder?: string;
  /** Milliseconds in `error` after which an instance is destroyed; absent: never. */
  destroyErrorsAfterMs?: number;
  /** All settings as operators see them, without secrets; absent: they see none. */
  settings?: readonly Setting[];
}

const DEFAULTS = {
  GPURENT_HTTP_ADDRESS: '127.0.0.1:8080',
  GPURENT_GRPC_ADDRESS: '127.0.0.1:8090',
  GPURENT_HTTP_TLS: 'auto',
  GPURENT_GRPC_TLS: 'auto',
  GPURENT_TLS_CERTIFICATE_FILE: '',
  GPURENT_TLS_KEY_FILE: '',
  GPURENT_TLS_NAMES: '',
  GPURENT_DATABASE: 'gpurent.db',
  GPURENT_BACKUP_FOLDER: '',
  GPURENT_BACKUP_EVERY_HOURS: '24',
  GPURENT_BACKUP_KEEP: '14',
  GPURENT_DESTROY_ERRORS_AFTER_HOURS: '24',
  GPURENT_LITESTREAM: 'no',
  GPURENT_LOG_LEVEL: 'info',
  GPURENT_LOG_FORMAT: '',
  GPURENT_AUDIT_STDOUT: 'no',
  GPURENT_PAYMENTS: 'manual',
  GPURENT_SIGN_UP: 'open',
  GPURENT_OPERATORS_NEED_SECOND_FACTOR: 'no',
  GPURENT_PUBLIC_URL: '',
  GPURENT_PUBLIC_GRPC_ADDRESS: '',
  GPURENT_HOST_RELEASE: '',
  GPURENT_ABUSE_EMAIL: '',
  GPURENT_ABUSE_URL: '',
  GPURENT_WEBHOOK_NETWORKS: '',
  GPURENT_RATE_LIMIT_ADDRESS: '1200',
  GPURENT_RATE_LIMIT_CREDENTIAL: '600',
  GPURENT_RATE_LIMIT_ATTEMPTS_ADDRESS: '60',
  GPURENT_RATE_LIMIT_ATTEMPTS_ACCOUNT: '20',
};
const OTHER_SETTINGS = [
  'GPURENT_CONFIG',
  'GPURENT_SECRET_KEY_FILE',
  ...AUDIT_WEBHOOK_SETTINGS,
  ...MAIL_SETTINGS,
  ...PROVIDER_SETTINGS,
];
/** The largest number that a limit can have. */
const MOST = 999_999_999;
type ReadSettings = Settings<keyof typeof DEFAULTS>;

/** Returns the file of the database. Unlike {@link parseConfig}, it creates no secret key. */
export function databaseOf(environment: Record<string, string | undefined>): string {
  return environment['GPURENT_DATABASE'] || DEFAULTS.GPURENT_DATABASE;
}

/** Reads the settings, and creates a secret key for a new database. Throws SetupError, which names the setting and says what to do. */
export function parseConfig(environment: Record<string, string | undefined>): Config & { secretKeyFile: string } {
  const checked = checkConfig(environment);
  return { ...checked, secretKey: readSecretKey(checked.secretKeyFile, checked.database) };
}

/** Reads the settings as {@link parseConfig} does, and creates nothing. */
export function checkConfig(
  environment: Record<string, string | undefined>,
): Omit<Config, 'secretKey'> & { secretKeyFile: string } {
  const known = new Set([...Object.keys(DEFAULTS), ...OTHER_SETTINGS]);
  const unknown = Object.keys(environment).filter((name) => !known.has(name) && !name.startsWith('GPURENT_AGENT_'));
  if (unknown.length > 0) throw new SetupError(unknownSettings(unknown, 'the control plane'));
  const settings = new Settings(environment, DEFAULTS);
  const limit = (name: keyof typeof DEFAULTS) => settings.whole(name, { most: MOST, such: Number(DEFAULTS[name]) });
  const yesOrNo = (name: keyof typeof DEFAULTS) => settings.oneOf(name, ['yes', 'no'], 'give yes or no') === 'yes';
  const database = databaseOf(environment);
  const links = publicUrl(settings);
  return {
    httpAddress: settings.text('GPURENT_HTTP_ADDRESS'),
    grpcAddress: settings.text('GPURENT_GRPC_ADDRESS'),
    tls: tlsSettings(settings),
    database,
    secretKeyFile: environment['GPURENT_SECRET_KEY_FILE'] || `${database}.key`,
    reserveBytes: RESERVE_BYTES,
    logLevel: settings.oneOf('GPURENT_LOG_LEVEL', LOG_LEVELS),
    logFormat: parseLogFormat('GPURENT_LOG_FORMAT', settings.text('GPURENT_LOG_FORMAT')),
    rateLimits: {
      perAddress: limit('GPURENT_RATE_LIMIT_ADDRESS'),
      perCredential: limit('GPURENT_RATE_LIMIT_CREDENTIAL'),
      attemptsPerAddress: limit('GPURENT_RATE_LIMIT_ATTEMPTS_ADDRESS'),
      attemptsPerAccount: limit('GPURENT_RATE_LIMIT_ATTEMPTS_ACCOUNT'),
    },
    signUp: settings.oneOf('GPURENT_SIGN_UP', SIGN_UP_MODES, `give ${SIGN_UP_MODES.join(' or ')}`),
    operatorsNeedFactor: yesOrNo('GPURENT_OPERATORS_NEED_SECOND_FACTOR'),
    ...links,
    ...publicGrpcAddress(settings),
    ...hostRelease(settings),
    abuse: abuse(settings),
    webhookNetworks: settings.list(
      'GPURENT_WEBHOOK_NETWORKS',
      isNetwork,
      'give networks or addresses, such as 10.1.0.0/16,fd00:1::/64',
    ),
    auditOut: auditOut(yesOrNo('GPURENT_AUDIT_STDOUT'), environment),
    ...mail(environment, links.publicUrl),
    destroyErrorsAfterMs: limit('GPURENT_DESTROY_ERRORS_AFTER_HOURS') * HOUR_MS,
    litestream: yesOrNo('GPURENT_LITESTREAM'),
    ...backups(settings.optional('GPURENT_BACKUP_FOLDER'), {
      everyMs: limit('GPURENT_BACKUP_EVERY_HOURS') * HOUR_MS,
      keep: limit('GPURENT_BACKUP_KEEP'),
    }),
    payments: payments(settings.text('GPURENT_PAYMENTS'), environment),
    settings: describeSettings(known, environment, DEFAULTS),
  };
}

function publicUrl(settings: ReadSettings): { publicUrl?: string } {
  const value = settings.optional('GPURENT_PUBLIC_URL');
  if (value === undefined) return {};
  const url = new URL(webAddress('GPURENT_PUBLIC_URL', value));
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '' || url.username + url.password !== '')
    settings.refuse('GPURENT_PUBLIC_URL', 'give only https://, a name and maybe a port');
  return { publicUrl: url.origin };
}

/** It becomes a part of a line for a shell. */
function publicGrpcAddress(settings: ReadSettings): { publicGrpcAddress?: string } {
  const value = settings.optional('GPURENT_PUBLIC_GRPC_ADDRESS');
  if (value === undefined) return {};
  const { host, port } = parseAddress('GPURENT_PUBLIC_GRPC_ADDRESS', value);
  if (/^[\w.:-]+$/.test(host) && !['0.0.0.0', '::'].includes(host) && port > 0) return { publicGrpcAddress: value };
  return settings.refuse(
    'GPURENT_PUBLIC_GRPC_ADDRESS',
    'give the HOST:PORT that hosts dial, such as gpurent.example.com:8090',
  );
}

/** The script of hosts needs both addresses, because it takes none from a request. */
function hostRelease(settings: ReadSettings): { hostRelease?: string } {
  const value = settings.optional('GPURENT_HOST_RELEASE');
  if (value === undefined) return {};
  if (!settings.optional('GPURENT_PUBLIC_URL') || !settings.optional('GPURENT_PUBLIC_GRPC_ADDRESS'))
    throw new SetupError('GPURENT_HOST_RELEASE needs GPURENT_PUBLIC_URL and GPURENT_PUBLIC_GRPC_ADDRESS');
  if (!value.endsWith('.tar.gz')) settings.refuse('GPURENT_HOST_RELEASE', 'give the path of a release, a .tar.gz file');
  return { hostRelease: value };
}

/** Anybody reads it in the API's document. */
function abuse(settings: ReadSettings): { email?: string; url?: string } {
  const email = settings.optional('GPURENT_ABUSE_EMAIL');
  const url = settings.optional('GPURENT_ABUSE_URL');
  if (email !== undefined && !/^[^@\s<>"]+@[^@\s<>"]+$/.test(email))
    settings.refuse('GPURENT_ABUSE_EMAIL', 'give one e-mail address');
  return {
    ...(email === undefined ? {} : { email }),
    ...(url === undefined ? {} : { url: webAddress('GPURENT_ABUSE_URL', url) }),
  };
}

function auditOut(stdout: boolean, environment: Record<string, string | undefined>): NonNullable<Config['auditOut']> {
  const optional = (name: string) => environment[name] || undefined;
  const webhook = auditWebhook({
    optional,
    file: (name) => secretOf(name, optional(name) ?? ''),
    webAddress(name) {
      const url = optional(name) ?? '';
      // It can have a token.
      if (!isWebAddress(url))
        throw new SetupError(`${name} is no https address; give one, such as https://logs.example/in`);
      return url;
    },
  });
  return { stdout, ...(webhook ? { webhook } : {}) };
}

function mail(environment: Record<string, string | undefined>, url: string | undefined): { mail?: SmtpSettings } {
  const optional = (name: string) => environment[name] || undefined;
  const settings = mailSettings({ optional, file: (name) => secretOf(name, optional(name) ?? '') }, url);
  return settings ? { mail: settings } : {};
}

function backups(folder: string | undefined, plan: Omit<BackupPlan, 'folder'>): { backups?: BackupPlan } {
  return folder === undefined ? {} : { backups: { folder, ...plan } };
}

function payments(provider: string, environment: Record<string, string | undefined>): () => PaymentProvider {
  const need = (name: string) => {
    const value = environment[name];
    if (!value) throw new SetupError(`GPURENT_PAYMENTS is "${provider}", which needs ${name}`);
    return value;
  };
  return paymentProvider(provider, {
    secret: (name) => secretOf(name, need(name)),
    webAddress: (name) => webAddress(name, need(name)),
    optionalWebAddress: (name) => {
      const value = environment[name];
      return value ? webAddress(name, value) : undefined;
    },
  });
}

/** Checks that an address uses https. Plain http is allowed only on loopback: it must not leave this machine. */
function webAddress(name: string, text: string): string {
  if (!isWebAddress(text)) throw new SetupError(`${name} is "${text}"; give an https address`);
  return text;
}

function isWebAddress(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isLocal = url?.protocol === 'http:' && ['127.0.0.1', 'localhost', '[::1]'].includes(url.hostname);
  return url?.protocol === 'https:' || isLocal;
}

function secretOf(name: string, file: string): string {
  try {
    const secret = readFileSync(file, 'utf8').trim();
    if (secret === '') throw new Error('the file is empty');
    return secret;
  } catch (error) {
    throw new SetupError(`${name} ${file} cannot be used: ${messageOf(error)}`, { cause: error });
  }
}

function tlsSettings(settings: ReadSettings): TlsSettings {
  const files = certificateFiles(
    'GPURENT_TLS',
    settings.text('GPURENT_TLS_CERTIFICATE_FILE'),
    settings.text('GPURENT_TLS_KEY_FILE'),
  );
  const names = settings.list('GPURENT_TLS_NAMES', () => true, '');
  return {
    http: speaksTls(settings, 'GPURENT_HTTP_ADDRESS', 'GPURENT_HTTP_TLS'),
    grpc: speaksTls(settings, 'GPURENT_GRPC_ADDRESS', 'GPURENT_GRPC_TLS'),
    ...(files ? { files } : {}),
    names: names.length === 0 ? [hostname(), 'localhost', '127.0.0.1'] : names,
  };
}

const TLS_CHOICES = 'give auto (TLS unless the address is loopback), on or off';

/** Returns whether a listener uses TLS. Plain text leaves this machine only if the setting is `off`. */
function speaksTls(settings: ReadSettings, name: keyof typeof DEFAULTS, setting: keyof typeof DEFAULTS): boolean {
  const { host } = parseAddress(name, settings.text(name));
  const choice = settings.oneOf(setting, ['auto', 'on', 'off'], TLS_CHOICES);
  return choice === 'auto' ? !isLoopback(host) : choice === 'on';
}
