import { X509Certificate, generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { reloadCertificate } from '../../control-plane/certificates.js';
import { DAY_MS, HOUR_MS } from '../../shared/time.js';
import { eventually } from '../../scripts/eventually.js';
import { certificateFor } from '../harness/certificate.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { TlsHosts, certified } from '../harness/tls-hosts.js';

const GRPC_ONLY = { http: false, grpc: true, names: ['localhost', '127.0.0.1'] };

/** No process has this id. */
const NOBODY = 2 ** 22 + 1;

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
    const folder = hosts.newFolder();
    const files = { certificate: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
    const first = await write(folder, ['127.0.0.1']);
    const own = await TestControlPlane.start({ tls: { ...GRPC_ONLY, files } });
    const token = await own.enrollmentToken();
    expect(token).toMatch(/^enr_[0-9a-f]{48}$/);
    const authorityFile = join(folder, 'ca.pem');
    writeFileSync(authorityFile, await other.core.platform.authority.certificate());
    const controlPlane = own.grpcAddress;
    const elsewhere = controlPlane.replace('127.0.0.1', 'localhost');
    await expect(hosts.enrolled({ controlPlane: elsewhere, token, authorityFile })).rejects.toThrow(
      /does not match|altnames/i,
    );
    const { identity } = await hosts.enrolled({ controlPlane, token, authorityFile });
    expect(certified(identity).trust.own).toBe(false);
    expect(await hosts.greeting(certified(identity), controlPlane)).toBe('welcome');

    expect(await shownAt(controlPlane)).toBe(first);
    writeFileSync(files.certificate, 'half a fi');
    await own.core.reload();
    expect(await shownAt(controlPlane)).toBe(first);
    const second = await write(folder, ['127.0.0.1']);
    await own.core.reload();
    await eventually('the newer one', async () => (await shownAt(controlPlane)) === second);
    expect(await hosts.greeting(certified(identity), controlPlane)).toBe('welcome');
    await own.stop();
  });

  it('hosts that were there before it go on: our own authority still vouches for us by its name', async () => {
    const folder = hosts.newFolder();
    const files = { certificate: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
    const shown = await write(folder, ['127.0.0.1']);
    const own = await TestControlPlane.start({ tls: GRPC_ONLY });
    const { identity } = await hosts.enrolled({ controlPlane: own.grpcAddress, token: await own.enrollmentToken() });
    const token = await own.enrollmentToken();
    await own.restart({ tls: { ...GRPC_ONLY, files } });
    expect(await shownAt(own.grpcAddress)).toBe(shown);
    expect(await hosts.greeting(certified(identity), own.grpcAddress)).toBe('welcome');
    // As does a token that was made before.
    const late = await hosts.enrolled({ controlPlane: own.grpcAddress, token });
    expect(await hosts.greeting(certified(late.identity), own.grpcAddress)).toBe('welcome');
    // Another one of ours, which is of another authority, is not believed.
    expect(await hosts.greeting(certified(identity), test.grpcAddress)).toMatch(/self-signed|certificate/);
    await own.stop();
  });

  it('one that ends within two weeks is a need, a metric and a line of the log, and one that has ended is not loaded for it', async () => {
    const folder = hosts.newFolder();
    const files = { certificate: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
    const put = async (days: number) => {
      // Certificates count whole seconds.
      const end = new Date(Math.floor((now() + days * DAY_MS) / 1_000) * 1_000);
      const { certificate, key } = await certificateFor('127.0.0.1', end);
      writeFileSync(files.certificate, certificate);
      writeFileSync(files.key, key);
      return { shown: new X509Certificate(certificate).fingerprint256, day: end.toISOString() };
    };
    const tls = { ...GRPC_ONLY, files };
    let now = () => Date.now();
    await put(15);
    const own = await TestControlPlane.start({ tls });
    now = () => own.clock.now();
    const needs = async () => {
      const { needs: all } = await own.operator.get<{ needs: { kind: string; items: object[] }[] }>(
        '/v1/operator/overview',
      );
      return all.find(({ kind }) => kind === 'certificate_expiring')?.items;
    };
    const warnings = () => own.logged(40).filter((line) => line.includes('the certificate for TLS'));
    expect([await needs(), warnings()]).toEqual([undefined, []]);

    const soon = await put(13);
    for (const _ of [1, 2]) await own.core.reload();
    expect(await needs()).toMatchObject([{ name: 'server', message: `It expires on ${soon.day}.` }]);
    expect(warnings()).toEqual([expect.stringContaining(`expires on ${soon.day}`)]);
    const metrics = await (await fetch(`${own.url}/metrics`)).text();
    const left = Number(/^gpurent_certificate_remaining_seconds\{certificate="server"\} (\S+)$/m.exec(metrics)?.[1]);
    expect(Math.abs(left * 1_000 - 13 * DAY_MS)).toBeLessThan(HOUR_MS);
    expect(metrics).toMatch(/certificate="own"/);
    expect(metrics).toMatch(/certificate="authority"/);

    const { day } = await put(-1);
    await expect(reloadCertificate(tls, NOBODY, now())).rejects.toThrow(
      `the present one stays: it has expired on ${day}`,
    );
    await own.core.reload();
    expect(await shownAt(own.grpcAddress)).toBe(soon.shown);
    // With no other one, it is shown, and the log says so.
    await own.restart({ tls });
    expect(await needs()).toMatchObject([{ message: `It has expired on ${day}.` }]);
    expect(own.logged(50).at(-1)).toContain(`has expired on ${day}`);
    await own.stop();
  });

  it('a reload fails with the reason where the pair cannot be used, and asks the daemon otherwise', async () => {
    const folder = hosts.newFolder();
    await write(folder, ['127.0.0.1']);
    const files = { certificate: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
    const reload = (pid: number) => reloadCertificate({ ...GRPC_ONLY, files }, pid, Date.now());
    const heard = new Promise((resolve) => process.once('SIGHUP', resolve));
    expect(await reload(process.pid)).toContain(`${files.certificate} is read again; it expires on 2`);
    await heard;
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    writeFileSync(files.key, privateKey.export({ type: 'pkcs8', format: 'pem' }));
    await expect(reload(NOBODY)).rejects.toThrow(/the present one stays: .*key values mismatch/);
    files.key = join(folder, 'nothing.pem');
    await expect(reload(NOBODY)).rejects.toThrow(/nothing\.pem/);
    expect(await reloadCertificate(GRPC_ONLY, NOBODY, Date.now())).toContain('nothing to read again');
    const unit = readFileSync(new URL('../../packaging/gpurent-control-plane.service', import.meta.url), 'utf8');
    expect(unit).toMatch(/^ExecReload=@NODE@ \S+\/control-plane\.js reload --pid \$MAINPID$/m);
  });

  it('one that cannot be used stops the start, and says so', async () => {
    const folder = hosts.newFolder();
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
