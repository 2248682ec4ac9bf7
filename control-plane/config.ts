import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { RESERVE_BYTES } from './domain/disk-room.js';
import { describeSettings, type Setting } from './domain/setting.js';
import { SIGN_UP_MODES, type SignUpMode } from './domain/identity/sign-up.js';
import type { PaymentProvider } from './domain/money/payment.js';
import { MAIL_SETTINGS, mailSettings, type SmtpSettings } from './mail/settings.js';
import { PROVIDER_SETTINGS, paymentProvider } from './payments/providers.js';
import { readSecretKey } from './secret-key.js';
import type { BackupPlan } from './store/scheduled-backups.js';
import { isLoopback, parseAddress } from '../shared/network/addresses.js';
import { SetupError, messageOf } from '../shared/coded-error.js';
import { parseLogFormat, type LogFormat } from '../shared/logger.js';
import { isNetwork } from '../shared/network/forbidden-networks.js';
import { certificateFiles, type CertificateFiles } from '../shared/network/server-identity.js';
import { unknownSettings } from '../shared/settings-file.js';
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
  /** Where abuse is to be reported; absent: the operator has named nothing. */
  abuse?: { email?: string; url?: string };
  /** Networks, private ones for example, that webhooks can reach although they are forbidden; absent: none. */
  webhookNetworks?: string[];
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
  GPURENT_PAYMENTS: 'manual',
  GPURENT_SIGN_UP: 'open',
  GPURENT_OPERATORS_NEED_SECOND_FACTOR: 'no',
  GPURENT_PUBLIC_URL: '',
  GPURENT_PUBLIC_GRPC_ADDRESS: '',
  GPURENT_ABUSE_EMAIL: '',
  GPURENT_ABUSE_URL: '',
  GPURENT_WEBHOOK_NETWORKS: '',
  GPURENT_RATE_LIMIT_ADDRESS: '1200',
  GPURENT_RATE_LIMIT_CREDENTIAL: '600',
  GPURENT_RATE_LIMIT_ATTEMPTS_ADDRESS: '60',
  GPURENT_RATE_LIMIT_ATTEMPTS_ACCOUNT: '20',
};
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];
const OTHER_SETTINGS = ['GPURENT_CONFIG', 'GPURENT_SECRET_KEY_FILE', ...MAIL_SETTINGS, ...PROVIDER_SETTINGS];

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
  const get = (name: keyof typeof DEFAULTS) => environment[name] || DEFAULTS[name];
  const limit = (name: keyof typeof DEFAULTS) => count(name, get(name));
  const database = databaseOf(environment);
  const secretKeyFile = environment['GPURENT_SECRET_KEY_FILE'] || `${database}.key`;
  const logLevel = get('GPURENT_LOG_LEVEL');
  if (!LOG_LEVELS.includes(logLevel))
    throw new SetupError(`GPURENT_LOG_LEVEL is "${logLevel}"; give one of ${LOG_LEVELS.join(', ')}`);
  const links = publicUrl(get('GPURENT_PUBLIC_URL'));
  return {
    httpAddress: get('GPURENT_HTTP_ADDRESS'),
    grpcAddress: get('GPURENT_GRPC_ADDRESS'),
    tls: tlsSettings(get),
    database,
    secretKeyFile,
    reserveBytes: RESERVE_BYTES,
    logLevel,
    logFormat: parseLogFormat('GPURENT_LOG_FORMAT', get('GPURENT_LOG_FORMAT')),
    rateLimits: {
      perAddress: limit('GPURENT_RATE_LIMIT_ADDRESS'),
      perCredential: limit('GPURENT_RATE_LIMIT_CREDENTIAL'),
      attemptsPerAddress: limit('GPURENT_RATE_LIMIT_ATTEMPTS_ADDRESS'),
      attemptsPerAccount: limit('GPURENT_RATE_LIMIT_ATTEMPTS_ACCOUNT'),
    },
    signUp: signUp(get('GPURENT_SIGN_UP')),
    operatorsNeedFactor: yesOrNo('GPURENT_OPERATORS_NEED_SECOND_FACTOR', get('GPURENT_OPERATORS_NEED_SECOND_FACTOR')),
    ...links,
    ...publicGrpcAddress(get('GPURENT_PUBLIC_GRPC_ADDRESS')),
    abuse: abuse(get('GPURENT_ABUSE_EMAIL'), get('GPURENT_ABUSE_URL')),
    webhookNetworks: networks('GPURENT_WEBHOOK_NETWORKS', get('GPURENT_WEBHOOK_NETWORKS')),
    ...mail(environment, links.publicUrl),
    destroyErrorsAfterMs: limit('GPURENT_DESTROY_ERRORS_AFTER_HOURS') * HOUR_MS,
    litestream: yesOrNo('GPURENT_LITESTREAM', get('GPURENT_LITESTREAM')),
    ...backups(get('GPURENT_BACKUP_FOLDER'), get('GPURENT_BACKUP_EVERY_HOURS'), get('GPURENT_BACKUP_KEEP')),
    payments: payments(get('GPURENT_PAYMENTS'), environment),
    settings: describeSettings(known, environment, DEFAULTS),
  };
}

function signUp(value: string): SignUpMode {
  const mode = SIGN_UP_MODES.find((known) => known === value);
  if (!mode) throw new SetupError(`GPURENT_SIGN_UP is "${value}"; give ${SIGN_UP_MODES.join(' or ')}`);
  return mode;
}

function yesOrNo(name: string, value: string): boolean {
  if (value === 'yes' || value === 'no') return value === 'yes';
  throw new SetupError(`${name} is "${value}"; give yes or no`);
}

function publicUrl(value: string): { publicUrl?: string } {
  if (value === '') return {};
  const url = new URL(webAddress('GPURENT_PUBLIC_URL', value));
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '' || url.username + url.password !== '')
    throw new SetupError(`GPURENT_PUBLIC_URL is "${value}"; give only https://, a name and maybe a port`);
  return { publicUrl: url.origin };
}

/** It becomes a part of a line for a shell. */
function publicGrpcAddress(value: string): { publicGrpcAddress?: string } {
  if (value === '') return {};
  const { host, port } = parseAddress('GPURENT_PUBLIC_GRPC_ADDRESS', value);
  if (/^[\w.:-]+$/.test(host) && !['0.0.0.0', '::'].includes(host) && port > 0) return { publicGrpcAddress: value };
  throw new SetupError(
    `GPURENT_PUBLIC_GRPC_ADDRESS is "${value}"; give the HOST:PORT that hosts dial, such as gpurent.example.com:8090`,
  );
}

/** Anybody reads it in the API's document. */
function abuse(email: string, url: string): { email?: string; url?: string } {
  if (email !== '' && !/^[^@\s<>"]+@[^@\s<>"]+$/.test(email))
    throw new SetupError(`GPURENT_ABUSE_EMAIL is "${email}"; give one e-mail address`);
  const page = url === '' ? {} : { url: webAddress('GPURENT_ABUSE_URL', url) };
  return { ...(email === '' ? {} : { email }), ...page };
}

function networks(name: string, value: string): string[] {
  const given = value
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean);
  const wrong = given.find((network) => !isNetwork(network));
  if (wrong === undefined) return given;
  throw new SetupError(`${name} names "${wrong}"; give networks or addresses, such as 10.1.0.0/16,fd00:1::/64`);
}

function mail(environment: Record<string, string | undefined>, url: string | undefined): { mail?: SmtpSettings } {
  const optional = (name: string) => environment[name] || undefined;
  const settings = mailSettings({ optional, file: (name) => secretOf(name, optional(name) ?? '') }, url);
  return settings ? { mail: settings } : {};
}

function backups(folder: string, everyHours: string, keep: string): { backups?: BackupPlan } {
  const everyMs = count('GPURENT_BACKUP_EVERY_HOURS', everyHours) * HOUR_MS;
  const plan = { folder, everyMs, keep: count('GPURENT_BACKUP_KEEP', keep) };
  return folder === '' ? {} : { backups: plan };
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
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isLocal = url?.protocol === 'http:' && ['127.0.0.1', 'localhost', '[::1]'].includes(url.hostname);
  if (url?.protocol !== 'https:' && !isLocal) throw new SetupError(`${name} is "${text}"; give an https address`);
  return text;
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

function count(name: string, text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text))
    throw new SetupError(`${name} is "${text}"; give a whole number from 1 to 999999999`);
  return Number(text);
}

function tlsSettings(get: (name: keyof typeof DEFAULTS) => string): TlsSettings {
  const files = certificateFiles('GPURENT_TLS', get('GPURENT_TLS_CERTIFICATE_FILE'), get('GPURENT_TLS_KEY_FILE'));
  const names = get('GPURENT_TLS_NAMES')
    .split(',')
    .map((name) => name.trim());
  return {
    http: speaksTls('GPURENT_HTTP_ADDRESS', get('GPURENT_HTTP_ADDRESS'), 'GPURENT_HTTP_TLS', get('GPURENT_HTTP_TLS')),
    grpc: speaksTls('GPURENT_GRPC_ADDRESS', get('GPURENT_GRPC_ADDRESS'), 'GPURENT_GRPC_TLS', get('GPURENT_GRPC_TLS')),
    ...(files ? { files } : {}),
    names: names.every((name) => name === '') ? [hostname(), 'localhost', '127.0.0.1'] : names,
  };
}

/** Returns whether a listener uses TLS. Plain text leaves this machine only if the setting is `off`. */
function speaksTls(name: string, address: string, setting: string, value: string): boolean {
  const { host } = parseAddress(name, address);
  switch (value) {
    case 'auto':
      return !isLoopback(host);
    case 'on':
      return true;
    case 'off':
      return false;
    default:
      throw new SetupError(`${setting} is "${value}"; give auto (TLS unless the address is loopback), on or off`);
  }
}
