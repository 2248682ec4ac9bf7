import type { FastifyInstance } from 'fastify';
import { diskFull } from '../domain/disk-room.js';
import type { App } from '../services/parts/parts.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Set if requests are served while the disk of the database is full: they end cost, let somebody in, or keep what must be kept. */
    servedOnFullDisk?: true;
  }
}

/** Refuses what may begin something with UNAVAILABLE while the disk of the database is full: every write that a route does not exempt. */
export function refuseOnFullDisk(app: FastifyInstance, { room }: App): void {
  app.addHook('onRequest', ({ method, routeOptions: { url, config } }, _reply, done) => {
    const isRead = method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
    const changesNothing = typeof config.policy === 'object' && config.policy.changesNothing;
    const isServed = isRead || changesNothing || config.servedOnFullDisk || url === undefined;
    done(room.isFull && !isServed ? diskFull() : undefined);
  });
}
