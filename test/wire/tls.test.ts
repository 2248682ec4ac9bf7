import { Metadata } from '@grpc/grpc-js';
import { X509Certificate, generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, createServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requestCertificate } from '../../agent/link/certificate-request.js';
import { connectionBy } from '../../agent/link/channel.js';
import { checkBeforeEnroll, enroll, type Enrollment } from '../../agent/link/enrollment.js';
import { loadIdentity, saveIdentity, type Identity, type Proof } from '../../agent/link/identity.js';
import { RenewedIdentity } from '../../agent/link/renewal.js';
import { silentLogger } from '../../shared/logger.js';
import { CONTROL_PLANE_NAME } from '../../shared/tls.js';
import { query } from '../../control-plane/store/sql.js';
import type { InstanceBody } from '../../scripts/client.js';
import { TestControlPlane, statusIs } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import { INVENTORY } from '../harness/inventory.js';
import { ManualClock } from '../harness/manual-clock.js';
import { dialWire, type WireClient } from '../harness/wire.js';

const OWN = { http: true, grpc: true, names: ['localhost', '127.0.0.1'] };
const GRPC_ONLY = { ...OWN, http: false };
const DAY_MS = 24 * 60 * 60_000;
type Certified = Extract<Proof, { kind: 'certificate' }>;

let test: TestControlPlane;
let other: TestControlPlane;
const folders: string[] = [];
const clients: WireClient[] = [];

beforeAll(async () => {
  test = await TestControlPlane.start({ tls: GRPC_ONLY });
  other = await TestControlPlane.start({ tls: GRPC_ONLY });
});
afterAll(async () => {
  for (const client of clients) client.close();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  await test.stop();
  await other.stop();
});

/** Also where a connection is left on which nobody ever spoke. */
async function stop(plain: TestControlPlane): Promise<void> {
  let isOver = false;
  const stopping = plain.stop().finally(() => (isOver = true));
  await eventually('the end', () => {
    plain.clock.advance(1_000);
    return isOver;
  });
  await stopping;
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-host-'));
  folders.push(folder);
  return folder;
}

async function enrolled(options: Partial<Enrollment> = {}): Promise<{ folder: string; identity: Identity }> {
  const folder = newFolder();
  const token = options.token ?? (await test.enrollmentToken());
  const identity = await enroll(
    folder,
    { controlPlane: test.grpcAddress, token, ...options },
    { inventory: INVENTORY, earlier: [] },
  );
  return { folder, identity };
}

const certified = ({ proof }: Identity) => proof as Certified;

/** What the control plane says to a stream that says hello: "welcome", or why it was refused. */
async function greeting(proof: Parameters<typeof connectionBy>[1], address = test.grpcAddress, bearer?: string) {
  const client = dialWire(address, connectionBy(address, proof));
  clients.push(client);
  const metadata = new Metadata();
  if (bearer !== undefined) metadata.set('authorization', `Bearer ${bearer}`);
  const stream = client.connect(metadata);
  return new Promise<string>((resolve) => {
    stream.on('data', (message: { message: string }) => resolve(message.message));
    stream.on('error', (error: Error) => resolve(error.message));
    stream.on('end', () => resolve('ended'));
    stream.write({ hello: { protocolMin: 1, protocolMax: 1, bootId: 'b', inventory: INVENTORY, instances: [] } });
  });
}

const machineToken = async (machineId: string) =>
  (await test.operator.post<{ token: string }>('/v1/operator/enrollment-tokens', { machine_id: machineId })).token;

describe('a host that enrols by TLS', () => {
  it('knows the control plane by what its token says, and is known by a certificate whose key it keeps', async () => {
    const { identity, folder } = await enrolled();
    const { trust, certificate } = certified(identity);
    expect(trust.own).toBe(true);
    const shown = new X509Certificate(certificate);
    expect(shown.subject).toBe(`CN=${identity.hostId}`);
    expect(shown.verify(new X509Certificate(trust.authority ?? '').publicKey)).toBe(true);
    expect(await greeting(certified(identity))).toBe('welcome');
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
    await enrolled({ token });
    await expect(enrolled({ token })).rejects.toThrow(/unknown, used up, expired or revoked/);
    const [, fingerprint] = token.split('.');
    await expect(enrolled({ token: `enr_${'0'.repeat(48)}.${fingerprint}` })).rejects.toThrow(/unknown, used up/);
  });

  it('says nothing to a control plane that its token does not name', async () => {
    const token = await other.enrollmentToken();
    await expect(enrolled({ token })).rejects.toThrow(/not the control plane that made this token/);
    const tokens = await other.operator.get<{ items: { uses: number }[] }>('/v1/operator/enrollment-tokens');
    expect(tokens.items[0]?.uses).toBe(0);
  });

  it('hears why plain text and TLS do not meet', async () => {
    const [token = ''] = (await test.enrollmentToken()).split('.');
    await expect(enrolled({ token })).rejects.toThrow(/spoken to in plain text/);
    const plain = await TestControlPlane.start();
    const authorityFile = join(newFolder(), 'ca.pem');
    writeFileSync(authorityFile, await test.core.platform.authority.certificate());
    await expect(enrolled({ controlPlane: plain.grpcAddress, authorityFile })).rejects.toThrow(/cannot be spoken to/);
    await stop(plain);
  });

  it.each([
    ['nothing', async () => Buffer.alloc(0)],
    ['noise', async () => Buffer.from('certify me')],
    ['a request that was tampered with', async () => tampered((await requestCertificate()).request)],
  ])('gets no certificate for %s', async (_what, make) => {
    const trust = certified((await enrolled()).identity).trust;
    const client = dialWire(test.grpcAddress, connectionBy(test.grpcAddress, { trust }));
    clients.push(client);
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
    const { trust } = certified((await enrolled()).identity);
    expect(await greeting({ trust })).toMatch(/belongs to no host/);
  });

  it('with a secret instead, be it right where plain text is spoken', async () => {
    const { trust, certificate } = certified((await enrolled()).identity);
    expect(await greeting({ trust }, test.grpcAddress, Buffer.from(certificate).toString('base64'))).toMatch(
      /belongs to no host/,
    );
  });

  it('with a certificate of another authority', async () => {
    const token = await other.enrollmentToken();
    const stranger = await enroll(
      newFolder(),
      { controlPlane: other.grpcAddress, token },
      { inventory: INVENTORY, earlier: [] },
    );
    const { trust } = certified((await enrolled()).identity);
    expect(await greeting({ ...certified(stranger), trust })).toMatch(/belongs to no host/);
  });

  it('with a certificate of the right authority that was never given to a host', async () => {
    const { trust } = certified((await enrolled()).identity);
    const { key, request } = await requestCertificate();
    const { pem } = await test.core.platform.authority.certifyHost(request, 'nobody');
    expect(await greeting({ trust, key, certificate: pem })).toMatch(/belongs to no host/);
  });

  it('by a host whose control plane is another one than it was', async () => {
    const { identity } = await enrolled();
    expect(await greeting(certified(identity), other.grpcAddress)).toMatch(/No connection established.*self-signed/s);
  });

  it('by a control plane that shows the certificate of a host', async () => {
    const { trust, key, certificate } = certified((await enrolled()).identity);
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
    const { identity } = await enrolled({ controlPlane: own.grpcAddress, token: await own.enrollmentToken() });
    // By the wall alone: nothing that runs is to be renewed by it.
    own.clock.step(364 * DAY_MS);
    expect(await greeting(certified(identity), own.grpcAddress)).toBe('welcome');
    own.clock.step(2 * DAY_MS);
    expect(await greeting(certified(identity), own.grpcAddress)).toMatch(/expired; ask the operator for a token/);
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
    const { folder, identity } = await enrolled();
    const clock = new ManualClock(Date.now() + 29 * DAY_MS);
    expect(await renew(folder, clock)).toEqual(identity);
    clock.advance(2 * DAY_MS);
    const lost = await renew(folder, clock);
    saveIdentity(folder, identity);
    expect(await greeting(certified(identity))).toBe('welcome');
    const newer = await renew(folder, clock);
    expect(loadIdentity(folder)).toEqual(newer);
    // The answer that was lost is forgotten, not a second key to the host.
    expect(await greeting(certified(lost))).toMatch(/belongs to no host/);
    expect(await greeting(certified(newer))).toBe('welcome');
    expect(await greeting(certified(identity))).toMatch(/replaced by a newer one/);
  });

  it('and not used before it is kept', async () => {
    const { folder, identity } = await enrolled();
    rmSync(folder, { recursive: true });
    const renewed = new RenewedIdentity(identity, folder, new ManualClock(Date.now() + 31 * DAY_MS), silentLogger);
    await expect(renewed.renewIfDue()).rejects.toThrow(/ENOENT/);
    expect(renewed.current()).toEqual(identity);
    expect(await greeting(certified(identity))).toBe('welcome');
  });

  it('and a host that has done so since a backup is let in after its restore, and only then', async () => {
    const { folder, identity } = await enrolled();
    // Certificates count whole seconds.
    test.clock.advance(2_000);
    const newer = await renew(folder, new ManualClock(Date.now() + 31 * DAY_MS));
    const forget = () =>
      test.core.platform.store.transact((tx) =>
        tx.run(query.deleteFrom('host_credentials').where('machine_id', '=', newer.hostId).where('generation', '>', 1)),
      );
    forget();
    expect(await greeting(certified(newer))).toMatch(/belongs to no host/);
    test.pretendRestored();
    const revocation = test.snapshot();
    await test.operator.request('DELETE', `/v1/operator/machines/${newer.hostId}/credentials`);
    expect(await greeting(certified(newer))).toMatch(/belongs to no host/);
    revocation();
    expect(await greeting(certified(newer))).toBe('welcome');
    expect(await greeting(certified(identity))).toMatch(/replaced by a newer one/);
    // The host was heard: from now on the store knows best again.
    forget();
    expect(await greeting(certified(newer))).toMatch(/belongs to no host/);
  });

  it('by nobody who shows no good one', async () => {
    const { identity } = await enrolled();
    const { trust } = certified(identity);
    await test.operator.request('DELETE', `/v1/operator/machines/${identity.hostId}/credentials`);
    const { request } = await requestCertificate();
    for (const channel of [{ trust }, certified(identity)]) {
      const client = dialWire(test.grpcAddress, connectionBy(test.grpcAddress, channel));
      clients.push(client);
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
    const { folder, identity } = await enrolled();
    const path = `/v1/operator/machines/${agent.hostId}`;
    expect((await test.operator.request('DELETE', `${path}/credentials`)).status).toBe(204);
    await eventually('the cut', () => !agent.connected);
    await expect(agent.connect()).rejects.toThrow(/an operator has revoked it; ask the operator for a token/);
    const machine = await test.operator.get<{ connected: boolean }>(path);
    expect(machine.connected).toBe(false);

    const again = { controlPlane: test.grpcAddress, again: true };
    const foreign = await machineToken(agent.hostId);
    await expect(enroll(folder, { ...again, token: foreign }, { inventory: INVENTORY, earlier: [] })).rejects.toThrow(
      `this is no token of machine ${identity.hostId}`,
    );
    const back = await enroll(
      folder,
      { ...again, token: await machineToken(identity.hostId) },
      { inventory: INVENTORY, earlier: [] },
    );
    expect(back.hostId).toBe(identity.hostId);
    expect(await greeting(certified(back))).toBe('welcome');
    expect(await greeting(certified(identity))).toMatch(/replaced/);
  });

  it('gives the token of a machine one use, and none to what is no machine', async () => {
    const { identity } = await enrolled();
    const ask = (body: object) => test.operator.request('POST', '/v1/operator/enrollment-tokens', body);
    expect((await ask({ machine_id: identity.hostId, max_uses: 2 })).status).toBe(422);
    expect((await ask({ machine_id: '00000000-0000-4000-8000-000000000000' })).status).toBe(404);
  });

  it('is told, on the host, how to enrol it again', async () => {
    const { folder, identity } = await enrolled();
    const enrollment = { controlPlane: test.grpcAddress, token: '' };
    expect(() => checkBeforeEnroll(folder, enrollment)).toThrow(
      new RegExp(`as ${identity.hostId}; .*add --again, with a token of that machine; .*removed.*add --new`),
    );
    expect(() => checkBeforeEnroll(folder, { ...enrollment, new: true })).not.toThrow();
    expect(() => checkBeforeEnroll(folder, { ...enrollment, new: true, again: true })).toThrow(/one of the two/);
    expect(() => checkBeforeEnroll(newFolder(), { ...enrollment, again: true })).toThrow(/leave out --again/);
  });
});

describe('with the operator’s own certificate', () => {
  const write = async (folder: string, names: string[]) => {
    const { certificate, key } = await other.core.platform.authority.certifyServer(names);
    writeFileSync(join(folder, 'cert.pem'), certificate);
    writeFileSync(join(folder, 'key.pem'), key);
    return new X509Certificate(certificate).fingerprint256;
  };

  const shownAt = (address: string) =>
    new Promise<string>((resolve, reject) => {
      const [host, port] = address.split(':');
      const socket = connect({ host, port: Number(port), rejectUnauthorized: false, ALPNProtocols: ['h2'] }, () => {
        resolve(socket.getPeerCertificate().fingerprint256);
        socket.destroy();
      }).on('error', reject);
    });

  it('hosts ask for its name, trust who they are told to, and a newer certificate is shown without a restart', async () => {
    const folder = newFolder();
    const files = { certificate: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
    const first = await write(folder, ['127.0.0.1']);
    const own = await TestControlPlane.start({ tls: { ...GRPC_ONLY, files } });
    const token = await own.enrollmentToken();
    expect(token).toMatch(/^enr_[0-9a-f]{48}$/);
    const authorityFile = join(folder, 'ca.pem');
    writeFileSync(authorityFile, await other.core.platform.authority.certificate());
    const controlPlane = own.grpcAddress;
    const elsewhere = controlPlane.replace('127.0.0.1', 'localhost');
    await expect(enrolled({ controlPlane: elsewhere, token, authorityFile })).rejects.toThrow(
      /does not match|altnames/i,
    );
    const { identity } = await enrolled({ controlPlane, token, authorityFile });
    expect(certified(identity).trust.own).toBe(false);
    expect(await greeting(certified(identity), controlPlane)).toBe('welcome');

    expect(await shownAt(controlPlane)).toBe(first);
    writeFileSync(files.certificate, 'half a fi');
    await own.core.reload();
    expect(await shownAt(controlPlane)).toBe(first);
    const second = await write(folder, ['127.0.0.1']);
    await own.core.reload();
    await eventually('the newer one', async () => (await shownAt(controlPlane)) === second);
    expect(await greeting(certified(identity), controlPlane)).toBe('welcome');
    await own.stop();
  });

  it('hosts that were there before it go on: our own authority still vouches for us by its name', async () => {
    const folder = newFolder();
    const files = { certificate: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
    const shown = await write(folder, ['127.0.0.1']);
    const own = await TestControlPlane.start({ tls: GRPC_ONLY });
    const { identity } = await enrolled({ controlPlane: own.grpcAddress, token: await own.enrollmentToken() });
    const token = await own.enrollmentToken();
    await own.restart({ tls: { ...GRPC_ONLY, files } });
    expect(await shownAt(own.grpcAddress)).toBe(shown);
    expect(await greeting(certified(identity), own.grpcAddress)).toBe('welcome');
    // As does a token that was made before.
    const late = await enrolled({ controlPlane: own.grpcAddress, token });
    expect(await greeting(certified(late.identity), own.grpcAddress)).toBe('welcome');
    // Another one of ours, which is of another authority, is not believed.
    expect(await greeting(certified(identity), test.grpcAddress)).toMatch(/self-signed|certificate/);
    await own.stop();
  });

  it('one that cannot be used stops the start, and says so', async () => {
    const folder = newFolder();
    await write(folder, ['127.0.0.1']);
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    writeFileSync(join(folder, 'key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }));
    const files = { certificate: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
    await expect(TestControlPlane.start({ tls: { ...GRPC_ONLY, files } })).rejects.toThrow(
      /the certificate for TLS cannot be used/,
    );
    files.key = join(folder, 'nothing.pem');
    await expect(TestControlPlane.start({ tls: { ...GRPC_ONLY, files } })).rejects.toThrow(/nothing\.pem/);
  });
});
