import { X509Certificate } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, createServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY_MS, HOUR_MS } from '../../shared/time.js';
import { requestCertificate } from '../../agent/link/certificate-request.js';
import { checkBeforeEnroll, enroll } from '../../agent/link/enrollment.js';
import { loadIdentity, saveIdentity } from '../../agent/link/identity.js';
import { RenewedIdentity } from '../../agent/link/renewal.js';
import { silentLogger } from '../../shared/logger.js';
import { CONTROL_PLANE_NAME } from '../../shared/network/tls.js';
import { query } from '../../control-plane/store/sql.js';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { INVENTORY } from '../harness/inventory.js';
import { ManualClock } from '../harness/manual-clock.js';
import { WatchedLog } from '../harness/watched-log.js';
import { TlsHosts, certified } from '../harness/tls-hosts.js';

const OWN = { http: true, grpc: true, names: ['localhost', '127.0.0.1'] };
const GRPC_ONLY = { ...OWN, http: false };

let test: TestControlPlane;
let other: TestControlPlane;
let hosts: TlsHosts;

beforeAll(async () => {
  test = await TestControlPlane.start({ tls: GRPC_ONLY });
  other = await TestControlPlane.start({ tls: GRPC_ONLY });
  hosts = new TlsHosts(test);
});
afterAll(async () => {
  hosts.close();
  await test.stop();
  await other.stop();
});

/** Also where a connection is left on which nobody ever spoke. */
async function stop(plain: TestControlPlane): Promise<void> {
  let isOver = false;
  const stopping = plain.stop().finally(() => (isOver = true));
  await advanceUntil('the end', { clock: plain.clock, stepMs: 1_000 }, () => isOver);
  await stopping;
}

const machineToken = async (machineId: string) =>
  (await test.operator.post<{ token: string }>('/v1/operator/enrollment-tokens', { machine_id: machineId })).token;

describe('a host that enrolls by TLS', () => {
  it('knows the control plane by what its token says, and is known by a certificate whose key it keeps', async () => {
    const { identity, folder } = await hosts.enrolled();
    const { trust, certificate } = certified(identity);
    expect(trust.own).toBe(true);
    const shown = new X509Certificate(certificate);
    expect(shown.subject).toBe(`CN=${identity.hostId}`);
    expect(shown.verify(new X509Certificate(trust.authority ?? '').publicKey)).toBe(true);
    expect(await hosts.greeting(certified(identity))).toBe('welcome');
    expect(loadIdentity(folder)).toEqual(identity);
    expect(test.everythingStored()).not.toContain('PRIVATE KEY');
  });

  it('runs workloads like any other', async () => {
    const agent = await test.host({ gpus: 1 });
    const renter = await test.renter();
    const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
    const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
    await statusIs(renter.api, id, 'running');
  });

  it('is refused with a token that was used, made up, or revoked', async () => {
    const token = await test.enrollmentToken();
    await hosts.enrolled({ token });
    await expect(hosts.enrolled({ token })).rejects.toThrow(/unknown, used up, expired or revoked/);
    const [, fingerprint] = token.split('.');
    await expect(hosts.enrolled({ token: `enr_${'0'.repeat(48)}.${fingerprint}` })).rejects.toThrow(/unknown, used up/);
  });

  it('says nothing to a control plane that its token does not name', async () => {
    const uses = async () =>
      (await other.operator.get<{ items: { uses: number }[] }>('/v1/operator/enrollment-tokens')).items
        .map((each) => each.uses)
        .sort();
    const token = await other.enrollmentToken();
    const before = await uses();
    expect(before).toContain(0);
    await expect(hosts.enrolled({ token })).rejects.toThrow(/not the control plane that made this token/);
    expect(await uses()).toEqual(before);
  });

  it('hears why plain text and TLS do not meet', async () => {
    const [token = ''] = (await test.enrollmentToken()).split('.');
    await expect(hosts.enrolled({ token })).rejects.toThrow(/the agent used plain text/);
    const plain = await TestControlPlane.start();
    const authorityFile = join(hosts.newFolder(), 'ca.pem');
    writeFileSync(authorityFile, await test.core.platform.authority.certificate());
    await expect(hosts.enrolled({ controlPlane: plain.grpcAddress, authorityFile })).rejects.toThrow(
      /no connection to/,
    );
    await stop(plain);
  });

  it.each([
    ['nothing', async () => Buffer.alloc(0)],
    ['noise', async () => Buffer.from('certify me')],
    ['a request that was tampered with', async () => tampered((await requestCertificate()).request)],
  ])('gets no certificate for %s', async (_what, make) => {
    const trust = certified((await hosts.enrolled()).identity).trust;
    const client = hosts.dial({ trust });
    const [token, before] = [await test.enrollmentToken(), test.dump()];
    const certificateRequest = await make();
    const refusal = await new Promise<Error | null>((resolve) =>
      client.enroll({ token, inventory: INVENTORY, certificateRequest }, (error) => resolve(error)),
    );
    expect(refusal?.message).toMatch(/the certificate request cannot be used/);
    expect(test.dump()).toEqual(before);
  });
});

/** The last byte is of the signature. */
function tampered(request: Buffer): Buffer {
  return Buffer.concat([request.subarray(0, -1), Buffer.from([(request.at(-1) ?? 0) ^ 1])]);
}

describe('a stream is refused', () => {
  it('without a certificate', async () => {
    const { trust } = certified((await hosts.enrolled()).identity);
    expect(await hosts.greeting({ trust })).toMatch(/belongs to no host/);
  });

  it('with a secret instead, be it right where plain text is spoken', async () => {
    const { trust, certificate } = certified((await hosts.enrolled()).identity);
    expect(await hosts.greeting({ trust }, test.grpcAddress, Buffer.from(certificate).toString('base64'))).toMatch(
      /belongs to no host/,
    );
  });

  it('with a certificate of another authority', async () => {
    const token = await other.enrollmentToken();
    const stranger = await enroll(
      hosts.newFolder(),
      { controlPlane: other.grpcAddress, token },
      { inventory: INVENTORY, earlier: [] },
    );
    const { trust } = certified((await hosts.enrolled()).identity);
    expect(await hosts.greeting({ ...certified(stranger), trust })).toMatch(/belongs to no host/);
  });

  it('with a certificate of the right authority that was never given to a host', async () => {
    const { trust } = certified((await hosts.enrolled()).identity);
    const { key, request } = await requestCertificate();
    const { pem } = await test.core.platform.authority.certifyHost(request, 'nobody');
    expect(await hosts.greeting({ trust, key, certificate: pem })).toMatch(/belongs to no host/);
  });

  it('by a host whose control plane is another one than it was', async () => {
    const { identity } = await hosts.enrolled();
    expect(await hosts.greeting(certified(identity), other.grpcAddress)).toMatch(
      /No connection established.*self-signed/s,
    );
  });

  it('by a control plane that shows the certificate of a host', async () => {
    const { trust, key, certificate } = certified((await hosts.enrolled()).identity);
    const server = createServer({ key, cert: certificate, ALPNProtocols: ['h2'] });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const error = await new Promise<Error>((resolve) => {
      const options = { host: '127.0.0.1', port, servername: CONTROL_PLANE_NAME, ca: trust.authority };
      connect(options)
        .on('error', resolve)
        .on('secureConnect', () => resolve(new Error('it was believed')));
    });
    server.close();
    expect(error.message).toMatch(/purpose/);
  });

  it('once the certificate has expired, saying what to do', async () => {
    const own = await TestControlPlane.start({ tls: GRPC_ONLY });
    const { identity } = await hosts.enrolled({ controlPlane: own.grpcAddress, token: await own.enrollmentToken() });
    // By the wall alone: nothing that runs is to be renewed by it.
    own.clock.step(364 * DAY_MS);
    expect(await hosts.greeting(certified(identity), own.grpcAddress)).toBe('welcome');
    own.clock.step(2 * DAY_MS);
    expect(await hosts.greeting(certified(identity), own.grpcAddress)).toMatch(/expired; ask the operator for a token/);
    await own.stop();
  });
});

describe('a certificate is renewed', () => {
  const renew = async (folder: string, clock: ManualClock) => {
    const renewed = new RenewedIdentity(loadIdentity(folder), folder, clock, silentLogger);
    await renewed.renewIfDue();
    return renewed.current();
  };

  it('after a month; the older one is good until the newer one is used, and never again', async () => {
    const { folder, identity } = await hosts.enrolled();
    const clock = new ManualClock(Date.now() + 29 * DAY_MS);
    expect(await renew(folder, clock)).toEqual(identity);
    clock.advance(2 * DAY_MS);
    const lost = await renew(folder, clock);
    saveIdentity(folder, identity);
    expect(await hosts.greeting(certified(identity))).toBe('welcome');
    const newer = await renew(folder, clock);
    expect(loadIdentity(folder)).toEqual(newer);
    // The answer that was lost is forgotten, not a second key to the host.
    expect(await hosts.greeting(certified(lost))).toMatch(/belongs to no host/);
    expect(await hosts.greeting(certified(newer))).toBe('welcome');
    expect(await hosts.greeting(certified(identity))).toMatch(/replaced by a newer one/);
  });

  it('and one that was not renewed is logged two weeks before its end, once a day, with when it ends', async () => {
    const { folder, identity } = await hosts.enrolled();
    const end = Date.parse(new X509Certificate(certified(identity).certificate).validTo);
    const { logger, atLeast } = new WatchedLog();
    const clock = new ManualClock(end - 14 * DAY_MS - 1.5 * HOUR_MS);
    // Nobody answers there.
    const away = { ...identity, controlPlane: '127.0.0.1:1' };
    const renewed = new RenewedIdentity(away, folder, clock, logger);
    expect(renewed.terms()).toEqual([{ name: 'host', expiresAt: end }]);
    const said = () => atLeast(40).filter((line) => line.includes('the certificate of this host expires on'));
    const tries = () => atLeast(40).filter((line) => line.includes('could not be renewed')).length;
    renewed.start();
    for (let hours = 1; hours <= 4; hours++) {
      await eventually('a try', () => tries() === hours);
      clock.advance(HOUR_MS);
    }
    expect(said()).toHaveLength(1);
    expect(said()[0]).toContain(new Date(end).toISOString());
    renewed.stop();
  });

  it('and not used before it is kept', async () => {
    const { folder, identity } = await hosts.enrolled();
    rmSync(folder, { recursive: true });
    const renewed = new RenewedIdentity(identity, folder, new ManualClock(Date.now() + 31 * DAY_MS), silentLogger);
    await expect(renewed.renewIfDue()).rejects.toThrow(/ENOENT/);
    expect(renewed.current()).toEqual(identity);
    expect(await hosts.greeting(certified(identity))).toBe('welcome');
  });

  it('and a host that has done so since a backup is let in after its restore, and only then', async () => {
    const { folder, identity } = await hosts.enrolled();
    // Certificates count whole seconds.
    test.clock.advance(2_000);
    const newer = await renew(folder, new ManualClock(Date.now() + 31 * DAY_MS));
    const forget = () =>
      test.core.platform.store.transact((tx) =>
        tx.run(query.deleteFrom('host_credentials').where('machine_id', '=', newer.hostId).where('generation', '>', 1)),
      );
    forget();
    expect(await hosts.greeting(certified(newer))).toMatch(/belongs to no host/);
    test.pretendRestored();
    const revocation = test.snapshot();
    await test.operator.request('DELETE', `/v1/operator/machines/${newer.hostId}/credentials`);
    expect(await hosts.greeting(certified(newer))).toMatch(/belongs to no host/);
    revocation();
    expect(await hosts.greeting(certified(newer))).toBe('welcome');
    expect(await hosts.greeting(certified(identity))).toMatch(/replaced by a newer one/);
    // The host was heard: from now on the store knows best again.
    forget();
    expect(await hosts.greeting(certified(newer))).toMatch(/belongs to no host/);
  });

  it('by nobody who shows no good one', async () => {
    const { identity } = await hosts.enrolled();
    const { trust } = certified(identity);
    await test.operator.request('DELETE', `/v1/operator/machines/${identity.hostId}/credentials`);
    const { request } = await requestCertificate();
    for (const channel of [{ trust }, certified(identity)]) {
      const client = hosts.dial(channel);
      const error = await new Promise<Error | null>((resolve) =>
        client.renew({ certificateRequest: request }, (failure) => resolve(failure)),
      );
      expect(error?.message).toMatch(/PERMISSION_DENIED/);
    }
  });
});

describe('an operator', () => {
  it('cuts a host off, and lets it in again as the same machine', async () => {
    const agent = await test.host({ gpus: 1 });
    const { folder, identity } = await hosts.enrolled();
    const path = `/v1/operator/machines/${agent.hostId}`;
    expect((await test.operator.request('DELETE', `${path}/credentials`)).status).toBe(204);
    await eventually('the cut', () => !agent.connected);
    await expect(agent.connect()).rejects.toThrow(/revoked by an operator; ask the operator for a token/);
    const machine = await test.operator.get<{ connected: boolean }>(path);
    expect(machine.connected).toBe(false);

    const again = { controlPlane: test.grpcAddress, again: true };
    const foreign = await machineToken(agent.hostId);
    await expect(enroll(folder, { ...again, token: foreign }, { inventory: INVENTORY, earlier: [] })).rejects.toThrow(
      `this token is not for machine ${identity.hostId}`,
    );
    const back = await enroll(
      folder,
      { ...again, token: await machineToken(identity.hostId) },
      { inventory: INVENTORY, earlier: [] },
    );
    expect(back.hostId).toBe(identity.hostId);
    expect(await hosts.greeting(certified(back))).toBe('welcome');
    expect(await hosts.greeting(certified(identity))).toMatch(/replaced/);
  });

  it('gives the token of a machine one use, and none to what is no machine', async () => {
    const { identity } = await hosts.enrolled();
    const ask = (body: object) => test.operator.request('POST', '/v1/operator/enrollment-tokens', body);
    expect((await ask({ machine_id: identity.hostId, max_uses: 2 })).status).toBe(422);
    expect((await ask({ machine_id: '00000000-0000-4000-8000-000000000000' })).status).toBe(404);
  });

  it('is told, on the host, how to enroll it again', async () => {
    const { folder, identity } = await hosts.enrolled();
    const enrollment = { controlPlane: test.grpcAddress, token: '' };
    expect(() => checkBeforeEnroll(folder, enrollment)).toThrow(
      new RegExp(`as ${identity.hostId}; .*add --again and use a token for that machine; .*removed.*add --new`),
    );
    expect(() => checkBeforeEnroll(folder, { ...enrollment, new: true })).not.toThrow();
    expect(() => checkBeforeEnroll(folder, { ...enrollment, new: true, again: true })).toThrow(/give only one of them/);
    expect(() => checkBeforeEnroll(hosts.newFolder(), { ...enrollment, again: true })).toThrow(/leave out --again/);
  });
});
