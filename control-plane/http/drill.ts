import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { ConsoleFiles } from './console/files.js';

/** The header that every answer has in a drill. */
export const DRILL_HEADER = 'Gpurent-Drill';

const BANNER =
  '<p role="status"><strong>This is a drill on a restored copy.</strong> Nothing here reaches hosts, mail servers, webhooks or payment providers.</p>';

/** Says in every answer, and on every page, that this control plane runs on a restored copy for a drill. */
export function announceDrill(app: FastifyInstance): void {
  app.addHook('onSend', async (_request, reply, payload) => {
    void reply.header(DRILL_HEADER, 'yes');
    const isPage = String(reply.getHeader('content-type')).startsWith('text/html') && typeof payload === 'string';
    if (!isPage) return payload;
    void reply.removeHeader('content-length');
    return withBanner(payload);
  });
}

/** Returns the console with the banner on its page. The encodings that the build has made lack it, so they are not served. */
export function consoleInDrill(files: ConsoleFiles): ConsoleFiles {
  const plain = Buffer.from(withBanner(files.page.plain.toString('utf8')));
  const hash = createHash('sha256').update(plain).digest('base64url').slice(0, 22);
  return { ...files, page: { ...files.page, plain, br: undefined, gzip: undefined, hash } };
}

const withBanner = (page: string) => page.replace(/<body[^>]*>/, (body) => body + BANNER);
