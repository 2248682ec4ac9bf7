import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { SetupError, messageOf } from '../shared/coded-error.js';

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
}

const DEFAULTS = {
  GPURENT_HTTP_ADDRESS: '127.0.0.1:8080',
  GPURENT_GRPC_ADDRESS: '127.0.0.1:8090',
  GPURENT_DATABASE: 'gpurent.db',
  GPURENT_LOG_LEVEL: 'info',
};
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];
const OTHER_SETTINGS = ['GPURENT_SECRET_KEY_FILE'];

/** Judges the environment. Throws SetupError naming the setting and what to do. */
export function parseConfig(environment: Record<string, string | undefined>): Config {
  const known = new Set([...Object.keys(DEFAULTS), ...OTHER_SETTINGS]);
  for (const name of Object.keys(environment)) {
    if (!known.has(name) && !name.startsWith('GPURENT_AGENT_'))
      throw new SetupError(`${name} is not a setting of the control plane`);
  }
  const get = (name: keyof typeof DEFAULTS) => environment[name] || DEFAULTS[name];
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
  };
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
