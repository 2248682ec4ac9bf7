import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { TestControlPlane } from '../harness/control-plane.js';

const DOCUMENT = '/v1/openapi.json';

let test: TestControlPlane;
beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterAll(() => test.stop());

const ask = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(test.url + path, { method, headers });
const tagOf = (answer: Response) => answer.headers.get('etag') ?? '';

it('the document is sent as JSON, with an ETag, by which a client need not read it again', async () => {
  const answer = await ask(DOCUMENT);
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  const text = await answer.text();
  expect(JSON.parse(text)).toMatchObject({ openapi: '3.1.0' });
  const again = await ask(DOCUMENT, { 'If-None-Match': tagOf(answer) });
  expect([again.status, await again.text(), tagOf(again)]).toEqual([304, '', tagOf(answer)]);
  const other = await ask(DOCUMENT, { 'If-None-Match': '"another"' });
  expect([other.status, await other.text()]).toEqual([200, text]);
  const head = await ask(DOCUMENT, {}, 'HEAD');
  expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(text)));
});

it('the interactive page reads the same', async () => {
  const [document, read] = [await ask(DOCUMENT), await ask('/docs/json')];
  expect(read.headers.get('content-type')).toBe(document.headers.get('content-type'));
  expect(tagOf(read)).toBe(tagOf(document));
  expect(await read.text()).toBe(await document.text());
  expect((await ask('/docs/json', { 'If-None-Match': tagOf(read) })).status).toBe(304);
  expect((await ask('/docs/')).headers.get('content-type')).toContain('text/html');
});

it('it is serialized once, however often strangers ask for it', async () => {
  await (await ask(DOCUMENT)).text();
  const serialize = vi.spyOn(JSON, 'stringify');
  try {
    for (const path of [DOCUMENT, '/docs/json', DOCUMENT]) await (await ask(path)).text();
    await ask(DOCUMENT, {}, 'HEAD');
    const documents = serialize.mock.calls.filter(([value]) => (value as { openapi?: string } | null)?.openapi);
    expect(documents).toEqual([]);
  } finally {
    serialize.mockRestore();
  }
});
