import { existsSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { statusIs } from '../harness/control-plane.js';
import { containersOf, occupy } from '../harness/docker.js';
import { RealPlatform, RealRenter } from '../harness/real.js';

const NO_CERTIFICATE = {
  GPURENT_AGENT_TLS_CERTIFICATE_FILE: '/nowhere/certificate.pem',
  GPURENT_AGENT_TLS_KEY_FILE: '/nowhere/key.pem',
};

let real: RealPlatform;

beforeAll(async () => {
  real = await RealPlatform.start({ ports: 1 });
});
afterAll(() => real.stop());

function expectOneLine(stderr: string, saying: RegExp): void {
  expect(stderr.trim().split('\n')).toHaveLength(1);
  expect(stderr).toMatch(saying);
  expect(stderr).toMatch(/^gpurent-agent: /);
}

it('a port that is taken fails the deploy with its reason, and leaves nothing behind', async () => {
  const renter = await RealRenter.on(real);
  const giveBack = await occupy(real.ports.first);
  const { id } = await renter.deploy();
  const failed = await statusIs(renter.api, id, 'error', 60_000);
  expect(failed).toMatchObject({
    error_code: 'provision_failed',
    error_message: expect.stringContaining(String(real.ports.first)) as string,
  });
  expect(await containersOf(id)).toEqual([]);
  await giveBack();
  await renter.destroy(id);
  const next = await renter.deploy();
  await statusIs(renter.api, next.id, 'running', 60_000);
  await renter.destroy(next.id);
});

it('an image that cannot be pulled fails the deploy with its reason', async () => {
  const renter = await RealRenter.on(real, { image: '127.0.0.1:1/none:1' });
  const { id } = await renter.deploy();
  const failed = await statusIs(renter.api, id, 'error', 60_000);
  expect(failed.error_message).toContain('127.0.0.1:1/none:1');
  expect(await containersOf(id)).toEqual([]);
  await renter.destroy(id);
});

it('a Docker that is stopped, or a second agent, ends the agent with one line', async () => {
  const stopped = await real.runAgent({
    GPURENT_AGENT_DOCKER_SOCKET: '/nowhere/docker.sock',
    GPURENT_AGENT_STATE_DIR: real.copyOfState(),
  });
  expect(stopped.code).toBe(1);
  expectOneLine(stopped.stderr, /Docker does not answer at \/nowhere\/docker\.sock .*systemctl start docker/);
  const second = await real.runAgent({});
  expect(second.code).toBe(1);
  expectOneLine(second.stderr, /another agent is running on this host/);
});

it('a wrong enrollment token, address or setting ends enrollment with one line, and nothing is written', async () => {
  const fresh = { GPURENT_AGENT_STATE_DIR: real.path('fresh') };
  const refusals: [string, Record<string, string>, RegExp][] = [
    ['enr_wrong', fresh, /did not enroll this host: .*ask the operator/],
    ['enr_wrong', {}, /this host is enrolled at/],
    ['x', { ...fresh, GPURENT_AGENT_PORTS: '22-30' }, /GPURENT_AGENT_PORTS/],
    ['x', { ...fresh, GPURENT_AGENT_GPUS: 'amd' }, /simulated:8/],
    ['x', { ...fresh, GPURENT_AGENT_PROTS: '1' }, /GPURENT_AGENT_PROTS is not a setting/],
    // What would keep new work away from the host is looked at before the token is shown.
    ['x', { ...fresh, GPURENT_AGENT_CONTAINER_RUNTIME: 'nonesuch' }, /"nonesuch", and Docker knows/],
    ['x', { ...fresh, ...NO_CERTIFICATE }, /certificate for TLS cannot be used/],
  ];
  for (const [token, env, saying] of refusals) {
    const failure = await real.enroll(token, env).then(
      () => undefined,
      (error: unknown) => error as { code: number; stderr: string },
    );
    expect(failure?.code).toBe(1);
    expectOneLine(failure?.stderr ?? '', saying);
    expect(existsSync(real.path('fresh/identity.json'))).toBe(false);
  }
});
