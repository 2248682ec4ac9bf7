import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { KeyAndCertificate } from '../../shared/network/server-identity.js';

export const MANIFEST_TYPE = 'application/vnd.docker.distribution.manifest.v2+json';

/** Whatever answers like a registry, or like what one names. */
export interface FakeServer {
  /** `ADDRESS:PORT` */
  address: string;
  port: number;
  /** `http://ADDRESS:PORT` */
  origin: string;
  /** What it was asked, in order. */
  asked: { method: string; url: string; authorization: string | undefined }[];
  stop(): void;
}

export function serveHttp(listener: RequestListener, host = '127.0.0.1', tls?: KeyAndCertificate): Promise<FakeServer> {
  const asked: FakeServer['asked'] = [];
  const note = (request: IncomingMessage) =>
    asked.push({
      method: request.method ?? '',
      url: request.url ?? '',
      authorization: request.headers.authorization,
    });
  const answer: RequestListener = (request, response) => {
    note(request);
    listener(request, response);
  };
  const server: Server = tls ? createTlsServer({ key: tls.key, cert: tls.certificate }, answer) : createServer(answer);
  const stop = () => {
    server.close();
    server.closeAllConnections();
  };
  return new Promise((resolve) =>
    server.listen(0, host, () => {
      const { port } = server.address() as AddressInfo;
      const address = `${host}:${port}`;
      resolve({ address, port, origin: `${tls ? 'https' : 'http'}://${address}`, asked, stop });
    }),
  );
}

export function digestOf(content: string | Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}

/** An image of one layer. `blobs`: what its registry serves, by digest. */
export function fakeImage(layer: Buffer, diffId: string, env: readonly string[] = []) {
  const config = JSON.stringify({
    architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
    os: 'linux',
    config: env.length > 0 ? { Env: env } : {},
    rootfs: { type: 'layers', diff_ids: [diffId] },
  });
  const mediaType = 'application/vnd.docker.image.rootfs.diff.tar.gzip';
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType: MANIFEST_TYPE,
    config: {
      mediaType: 'application/vnd.docker.container.image.v1+json',
      size: config.length,
      digest: digestOf(config),
    },
    layers: [{ mediaType, size: layer.length, digest: digestOf(layer) }],
  });
  const blobs = new Map<string, Buffer>([
    [digestOf(config), Buffer.from(config)],
    [digestOf(layer), layer],
  ]);
  return { manifest, blobs, layerDigest: digestOf(layer) };
}
