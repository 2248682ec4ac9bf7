import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { addApp } from '../harness/second-factors.js';

const STALE_MS = 15 * 60_000 + 1;
const PATH = '/v1/webhook-endpoints';
const NEW = { url: 'https://hooks.example/new' };

let test: TestControlPlane;
let renter: Renter;
let path: string;
beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterAll(() => test.stop());
beforeEach(async () => {
  renter = await test.renter(0);
  const { endpoint } = await renter.api.post<{ endpoint: { id: string } }>(PATH, NEW);
  path = `${PATH}/${endpoint.id}`;
});

const answer = async (method: string, at: string, body: object) => {
  const { status, body: given } = await renter.api.request<{ code?: string }>(method, at, body);
  return given.code ?? status;
};

/** Answers to what decides where events are sent, and who can sign them. */
const answers = async () => [
  await answer('POST', PATH, NEW),
  await answer('PATCH', path, NEW),
  await answer('POST', `${path}/rotate-secret`, {}),
];

describe('where events are sent', () => {
  it('is changed only with a fresh proof by a user with a second factor', async () => {
    await addApp(test, renter.api);
    expect(await answers()).toEqual([201, 200, 200]);
    test.clock.advance(STALE_MS);
    expect(await answers()).toEqual(['PROOF_REQUIRED', 'PROOF_REQUIRED', 'PROOF_REQUIRED']);
    expect(await answer('PATCH', path, { description: 'for the team', enabled: false })).toBe(200);
  });

  it('is changed without one by users without a second factor', async () => {
    test.clock.advance(STALE_MS);
    expect(await answers()).toEqual([201, 200, 200]);
  });
});
