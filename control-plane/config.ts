import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import type { StripeSettings } from './payments/stripe.js';
import type { BackupPlan } from './store/scheduled-backups.js';
import { SetupError, messageOf } from '../shared/coded-error.js';
import { parseLogFormat, type LogFormat } from '../shared/logger.js';

/** How many requests are let through: of one address and one credential a minute, at passwords in fifteen minutes. */
export interface RateLimits {
  perAddress: number;
  perCredential: number;
  attemptsPerAddress: number;
  attemptsPerAccount: number;
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
  logLevel: string;
  /** Null: as whoever looks can read it. */
  logFormat: LogFormat | null;
  rateLimits: RateLimits;
  /** Absent: operators grant credit, and nothing is paid here. */
  stripe?: StripeSettings;
  /** Absent: nobody but people makes copies. */
  backups?: BackupPlan;
}

const DEFAULTS = {
  GPURENT_HTTP_ADDRESS: '127.0.0.1:8080',
  GPURENT_GRPC_ADDRESS: '127.0.0.1:8090',
  GPURENT_DATABASE: 'gpurent.db',
  GPURENT_BACKUP_FOLDER: '',
  GPURENT_BACKUP_EVERY_HOURS: '24',
  GPURENT_BACKUP_KEEP: '14',
  GPURENT_LOG_LEVEL: 'info',
  GPURENT_LOG_FORMAT: '',
  GPURENT_PAYMENTS: 'manual',
  GPURENT_RATE_LIMIT_ADDRESS: '1200',
  GPURENT_RATE_LIMIT_CREDENTIAL: '600',
  GPURENT_RATE_LIMIT_ATTEMPTS_ADDRESS: '60',
  GPURENT_RATE_LIMIT_ATTEMPTS_ACCOUNT: '20',
};
const HOUR_MS = 60 * 60_000;
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];
const STRIPE_SETTINGS = [
  'GPURENT_STRIPE_SECRET_KEY_FILE',
  'GPURENT_STRIPE_WEBHOOK_SECRET_FILE',
  'GPURENT_STRIPE_RETURN_URL',
  'GPURENT_STRIPE_API_URL',
] as const;
const OTHER_SETTINGS = ['GPURENT_SECRET_KEY_FILE', ...STRIPE_SETTINGS];

/** Judges the environment. Throws SetupError naming the setting and what to do. */
export function parseConfig(environment: Record<string, string | undefined>): Config {
  const known = new Set([...Object.keys(DEFAULTS), ...OTHER_SETTINGS]);
  for (const name of Object.keys(environment)) {
    if (!known.has(name) && !name.startsWith('GPURENT_AGENT_'))
      throw new SetupError(`${name} is not a setting of the control plane`);
  }
  const get = (name: keyof typeof DEFAULTS) => environment[name] || DEFAULTS[name];
  const limit = (name: keyof typeof DEFAULTS) => count(name, get(name));
  const database = get('GPURENT_DATABASE');
  const logLevel = get('GPURENT_LOG_LEVEL');
  if (!LOG_LEVELS.includes(logLevel))
    throw new SetupError(`GPURENT_LOG_LEVEL is "${logLevel}"; give one of ${LOG_LEVELS.join(', ')}`);
  return {
    httpAddress: loopback('GPURENT_HTTP_ADDRESS', get('GPURENT_HTTP_ADDRESS')),
    grpcAddress: loopback('GPURENT_GRPC_ADDRESS', get('GPURENT_GRPC_ADDRESS')),
    database,
    secretKey: secretKey(environment['GPURENT_SECRET_KEY_FILE'] || `${database}.key`, database),
    logLevel,
    logFormat: parseLogFormat('GPURENT_LOG_FORMAT', get('GPURENT_LOG_FORMAT')),
    rateLimits: {
      perAddress: limit('GPURENT_RATE_LIMIT_ADDRESS'),
      perCredential: limit('GPURENT_RATE_LIMIT_CREDENTIAL'),
      attemptsPerAddress: limit('GPURENT_RATE_LIMIT_ATTEMPTS_ADDRESS'),
      attemptsPerAccount: limit('GPURENT_RATE_LIMIT_ATTEMPTS_ACCOUNT'),
    },
    ...backups(get('GPURENT_BACKUP_FOLDER'), get('GPURENT_BACKUP_EVERY_HOURS'), get('GPURENT_BACKUP_KEEP')),
    ...payments(get('GPURENT_PAYMENTS'), environment),
  };
}

function backups(folder: string, everyHours: string, keep: string): { backups?: BackupPlan } {
  const everyMs = count('GPURENT_BACKUP_EVERY_HOURS', everyHours) * HOUR_MS;
  const plan = { folder, everyMs, keep: count('GPURENT_BACKUP_KEEP', keep) };
  return folder === '' ? {} : { backups: plan };
}

function payments(provider: string, environment: Record<string, string | undefined>): { stripe?: StripeSettings } {
  const need = (name: (typeof STRIPE_SETTINGS)[number]) => {
    const value = environment[name];
    if (!value) throw new SetupError(`GPURENT_PAYMENTS is "stripe", which needs ${name}`);
    return value;
  };
  switch (provider) {
    case 'manual':
      return {};
    case 'stripe': {
      const apiUrl = environment['GPURENT_STRIPE_API_URL'] || undefined;
      if (apiUrl !== undefined) webAddress('GPURENT_STRIPE_API_URL', apiUrl);
      const secretKey = secretOf('GPURENT_STRIPE_SECRET_KEY_FILE', need('GPURENT_STRIPE_SECRET_KEY_FILE'));
      const webhookSecret = secretOf('GPURENT_STRIPE_WEBHOOK_SECRET_FILE', need('GPURENT_STRIPE_WEBHOOK_SECRET_FILE'));
      const returnUrl = webAddress('GPURENT_STRIPE_RETURN_URL', need('GPURENT_STRIPE_RETURN_URL'));
      return { stripe: { secretKey, webhookSecret, returnUrl, apiUrl } };
    }
    default:
      throw new SetupError(`GPURENT_PAYMENTS is "${provider}"; give manual or stripe`);
  }
}

/** Plain text does not leave this machine. */
function webAddress(name: string, text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isLocal = url?.protocol === 'http:' && ['127.0.0.1', 'localhost', '[::1]'].includes(url.hostname);
  if (url?.protocol !== 'https:' && !isLocal) throw new SetupError(`${name} is "${text}"; give an https address`);
  return text;
}

function secretOf(name: string, file: string): string {
  try {
    const secret = readFileSync(file, 'utf8').trim();
    if (secret === '') throw new Error('it is empty');
    return secret;
  } catch (error) {
    throw new SetupError(`${name} ${file} cannot be used: ${messageOf(error)}`, { cause: error });
  }
}

function count(name: string, text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new SetupError(`${name} is "${text}"; give a whole number from 1 on`);
  return Number(text);
}

/** Both listeners speak plain text, which does not leave this machine. */
function loopback(name: string, address: string): string {
  const match = /^(?:\[(.+)\]|([^:]+)):(\d{1,5})$/.exec(address);
  const host = match?.[1] ?? match?.[2] ?? '';
  if (!match || Number(match[3]) > 65535)
    throw new SetupError(`${name} is "${address}"; give HOST:PORT, such as 127.0.0.1:8080`);
  const isLoopback = host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
  if (!isLoopback) {
    throw new SetupError(
      `${name} is "${address}", but it speaks plain text: bind it to 127.0.0.1 and put a TLS proxy in front of it`,
    );
  }
  return address;
}

/** Reads the key that seals secrets; makes one for a new database, readable by its owner alone. */
function secretKey(file: string, database: string): Buffer {
  if (!existsSync(file) && existsSync(database)) {
    throw new SetupError(`${file} is missing: the secrets in ${database} open with that key alone; put it back`);
  }
  try {
    if (!existsSync(file)) {
      writeFileSync(file, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flag: 'wx', flush: true });
    }
    const text = readFileSync(file, 'utf8').trim();
    if (!/^[0-9a-f]{64}$/i.test(text)) throw new Error('it does not hold 64 hexadecimal digits');
    return Buffer.from(text, 'hex');
  } catch (error) {
    throw new SetupError(`GPURENT_SECRET_KEY_FILE ${file} cannot be used: ${messageOf(error)}`, { cause: error });
  }
}
