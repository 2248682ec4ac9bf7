import { readFileSync } from 'node:fs';
import { fastify } from 'fastify';

/** Serves the answers of a JSON file, bytes by path, with nothing but Fastify; 304 where the client has the same. */
const [file = ''] = process.argv.slice(2);
const app = fastify();
for (const [path, body] of Object.entries(JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>)) {
  app.get(path, (request, reply) => {
    if (request.headers['if-none-match'] === '"same"') return reply.code(304).send();
    return reply.type('application/json; charset=utf-8').send(body);
  });
}
const address = await app.listen({ host: '127.0.0.1', port: 0 });
process.stdout.write(`${JSON.stringify({ url: address })}\n`);
process.once('SIGTERM', () => void app.close());
