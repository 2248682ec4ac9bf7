import { pino, type DestinationStream, type Logger } from 'pino';
import { createRequire } from 'node:module';
import type PinoPretty from 'pino-pretty';
import { SetupError } from './coded-error.js';

export type { Logger };

/** The form of log lines: JSON for programs, text for people. */
export type LogFormat = 'json' | 'text';

// oxlint-disable-next-line no-control-regex -- all but the tab and the end of a line
const UNPRINTABLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

/** Reads the setting `name`; an empty value gives null. Throws SetupError. */
export function parseLogFormat(name: string, value: string): LogFormat | null {
  if (value === '' || value === 'json' || value === 'text') return value || null;
  throw new SetupError(`${name} is "${value}"; give "text" for people or "json" for programs`);
}

/**
 * Creates a logger on standard error, because standard output is for a program's answers. Without a format it writes text to a
 * terminal and JSON otherwise.
 */
export function createLogger(
  name: string,
  level: string,
  format: LogFormat | null = null,
  destination: DestinationStream = pino.destination(2),
): Logger {
  const isText = (format ?? (process.stderr.isTTY ? 'text' : 'json')) === 'text';
  const options = {
    name,
    level,
    redact: ['token', 'password', 'credential', 'authorization', '*.token', '*.password'],
  };
  if (!isText) return pino(options, destination);
  // Loaded only for text, so that services start without it.
  const makePretty = createRequire(import.meta.url)('pino-pretty') as typeof PinoPretty;
  const pretty = makePretty({
    messageFormat: (line, key) => printable(String(line[key])),
    destination,
    sync: true,
    colorize: process.stderr.isTTY,
    ignore: 'pid,hostname',
    translateTime: "UTC:yyyy-mm-dd'T'HH:MM:ss.l'Z'",
    singleLine: true,
  });
  const err = (error: Error) => {
    const { message, stack, ...rest } = pino.stdSerializers.err(error);
    return { ...rest, message: printable(message), stack: printable(stack) };
  };
  return pino({ ...options, serializers: { err } }, pretty);
}

/**
 * Escapes unprintable characters: logs contain text of strangers, which must not control a terminal or hide lines from
 * journalctl.
 */
function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) =>
    JSON.stringify(character)
      .slice(1, -1)
      .replace(/^[^\\].*$/, '?'),
  );
}

export const silentLogger: Logger = pino({ level: 'silent' });
