import { X509Certificate, generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { TlsHosts, certified } from '../harness/tls-hosts.js';

const GRPC_ONLY = { http: false, grpc: true, names: ['localhost', '127.0.0.1'] };

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
