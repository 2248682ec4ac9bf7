import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { fetchDocument, type ApiDocument } from '../harness/openapi-conformance.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';

let test: TestControlPlane;
let renter: Renter;
let id: string;
let document: ApiDocument;
beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
  document = await fetchDocument(test.url);
  const offer_id = await test.offer(await test.host());
  const body = { offer_id, template_id: await test.template(), disk_gb: 10 };
  id = (await renter.api.post<InstanceBody>('/v1/instances', body)).id;
  await statusIs(renter.api, id, 'running');
});
afterAll(() => test.stop());

/** What answers to the two methods have in common. */
const ask = async (method: string, path: string, token: string | undefined) => {
  const answer = await fetch(test.url + path, { method, headers: token ? { Authorization: `Bearer ${token}` } : {} });
  const text = await answer.text();
  const header = (name: string) => answer.headers.get(name);
  const headers = ['content-type', 'cache-control', 'www-authenticate', 'content-disposition'].map(header);
  return { status: answer.status, headers, text };
};

it('HEAD answers as GET does, without the body, and asks for the same credential', async () => {
  const paths = Object.entries(document.paths).flatMap(([path, { get }]) => (get ? [path] : []));
  expect(paths.length).toBeGreaterThan(28);
  for (const path of [...paths, '/v1/openapi.json', '/docs/']) {
    for (const token of [path.startsWith('/v1/operator') ? test.operator.token : renter.api.token, undefined]) {
      const at = path.replace(/\{[^}]+\}/, id);
      const [get, head] = [await ask('GET', at, token), await ask('HEAD', at, token)];
      expect({ ...head, path }).toEqual({ ...get, path, text: '' });
      expect(get.text.length).toBeGreaterThan(1);
    }
  }
  expect((await ask('HEAD', '/v1/instances', undefined)).status).toBe(401);
});

it('HEAD is no way to what has no GET', async () => {
  const answer = await fetch(`${test.url}/v1/instances/${id}/stop`, { method: 'HEAD' });
  expect(answer.status).toBe(405);
  const { headers } = await fetch(`${test.url}/v1/instances`, { method: 'PUT' });
  expect(headers.get('allow')?.split(', ').sort()).toEqual(['GET', 'HEAD', 'POST']);
});
