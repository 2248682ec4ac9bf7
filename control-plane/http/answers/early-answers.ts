import { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { Clock } from '../../../shared/clock.js';

/** How long an answered client can continue to send its body. */
const LINGER_MS = 5_000;

/**
 * Keeps a connection open for five seconds after an answer that was sent before the whole body arrived, for example because the
 * body is too large or the caller is not allowed to send it. The rest of the body is discarded. Many clients read the answer only
 * after they have sent everything; without this, the closed connection is reset and they never see the answer.
 */
export function lingerAfterEarlyAnswers(app: FastifyInstance, clock: Clock): void {
  app.addHook('onSend', ({ raw }, reply, payload, done) => {
    if (isArriving(raw)) {
      // Otherwise Node closes the connection as soon as the answer is written.
      reply.raw.shouldKeepAlive = true;
      void reply.removeHeader('connection');
    }
    done(null, payload);
  });
  app.addHook('onResponse', ({ raw }, _reply, done) => {
    done();
    if (!isArriving(raw)) return;
    const timer = clock.schedule(LINGER_MS, () => raw.socket.destroy());
    raw.once('close', () => timer.cancel());
    raw.once('end', () => {
      timer.cancel();
      if (raw.headers.connection?.toLowerCase() === 'close') raw.socket.end();
    });
  });
}

function isArriving(raw: IncomingMessage): boolean {
  const { complete, headers, destroyed } = raw;
  // A request from within this process has no connection.
  if (complete || destroyed || !(raw instanceof IncomingMessage)) return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
