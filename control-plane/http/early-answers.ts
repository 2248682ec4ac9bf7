import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { Clock } from '../../shared/clock.js';

/** For so long a client that was answered may go on sending. */
const LINGER_MS = 5_000;

/**
 * Answers before a body has been read (it is too large, or nobody may send it) reach their clients: many read nothing before they
 * have sent everything, and a connection that is closed meanwhile is reset. What still comes is thrown away, for five seconds.
 */
export function lingerAfterEarlyAnswers(app: FastifyInstance, clock: Clock): void {
  app.addHook('onSend', async ({ raw }, reply) => {
    if (!isArriving(raw)) return;
    // Else Node closes the connection as soon as the answer is written.
    reply.raw.shouldKeepAlive = true;
    void reply.removeHeader('connection');
  });
  app.addHook('onResponse', async ({ raw }) => {
    if (!isArriving(raw)) return;
    const timer = clock.schedule(LINGER_MS, () => raw.socket.destroy());
    raw.once('close', () => timer.cancel());
    raw.once('end', () => {
      timer.cancel();
      if (raw.headers.connection?.toLowerCase() === 'close') raw.socket.end();
    });
  });
}

function isArriving({ complete, headers, destroyed }: IncomingMessage): boolean {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  return hasBody && !complete && !destroyed;
}
