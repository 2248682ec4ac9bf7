import { pino, type Logger } from 'pino';

export type { Logger };

/** JSON lines on standard error, so that standard output stays free for what a program answers. */
export function createLogger(name: string, level: string): Logger {
  return pino(
    { name, level, redact: ['token', 'password', 'credential', 'authorization', '*.token', '*.password'] },
    pino.destination(2),
  );
}

export const silentLogger: Logger = pino({ level: 'silent' });
