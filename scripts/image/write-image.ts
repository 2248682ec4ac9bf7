import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

// Makes an OCI layout of the layers in a folder, with the index of "docker save" beside its own, for Docker before 25.
// Usage: node dist/scripts/image/write-image.js FOLDER ARCHITECTURE VERSION REVISION SECONDS LAYER...

const [folder = '', architecture = '', version = '', revision = '', seconds = '', ...names] = process.argv.slice(2);
const created = new Date(Number(seconds) * 1000).toISOString();
const tag = `gpurent/control-plane:${version}`;
const OCI = 'application/vnd.oci.image';
mkdirSync(`${folder}/blobs/sha256`, { recursive: true });

interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
}
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
/** Writes a blob and returns its descriptor. */
function blob(mediaType: string, bytes: Buffer): Descriptor {
  const hash = sha256(bytes);
  writeFileSync(`${folder}/blobs/sha256/${hash}`, bytes);
  return { mediaType, digest: `sha256:${hash}`, size: bytes.length };
}
const json = (value: unknown) => Buffer.from(JSON.stringify(value));
const pathOf = ({ digest }: Descriptor) => `blobs/${digest.replace(':', '/')}`;

const layers = names.map((name) => {
  const file = `${folder}/${name}`;
  const diffId = `sha256:${sha256(readFileSync(file))}`;
  // Gzip of the system: that of Node differs between its versions.
  const packed = execFileSync('gzip', ['-nc', file], { maxBuffer: 2 ** 30 });
  rmSync(file);
  return { diffId, descriptor: blob(`${OCI}.layer.v1.tar+gzip`, packed) };
});
const program = '/usr/local/bin/gpurent-control-plane';
const config = blob(
  `${OCI}.config.v1+json`,
  json({
    created,
    architecture,
    os: 'linux',
    config: {
      User: '65532:65532',
      Env: ['PATH=/usr/local/bin', 'NODE_ENV=production', 'GPURENT_DATABASE=/var/lib/gpurent/gpurent.db'],
      Entrypoint: [program],
      Cmd: ['serve'],
      WorkingDir: '/var/lib/gpurent',
      Volumes: { '/var/lib/gpurent': {} },
      StopSignal: 'SIGTERM',
      // Only Docker knows it; times are nanoseconds.
      Healthcheck: { Test: ['CMD', program, 'ready'], Interval: 30e9, Timeout: 15e9, StartPeriod: 60e9, Retries: 3 },
      Labels: {
        'org.opencontainers.image.title': 'gpurent control plane',
        'org.opencontainers.image.description': 'Serves the gpurent API and sends commands to GPU hosts',
        'org.opencontainers.image.version': version,
        'org.opencontainers.image.revision': revision,
        'org.opencontainers.image.created': created,
        'org.opencontainers.image.licenses': 'Apache-2.0',
      },
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: names.map((name) => ({ created, created_by: `scripts/build-image: ${name}` })),
  }),
);
const manifest = blob(
  `${OCI}.manifest.v1+json`,
  json({
    schemaVersion: 2,
    mediaType: `${OCI}.manifest.v1+json`,
    config,
    layers: layers.map(({ descriptor }) => descriptor),
  }),
);
const annotations = { 'io.containerd.image.name': `docker.io/${tag}`, 'org.opencontainers.image.ref.name': version };
writeFileSync(`${folder}/oci-layout`, json({ imageLayoutVersion: '1.0.0' }));
writeFileSync(
  `${folder}/index.json`,
  json({
    schemaVersion: 2,
    mediaType: `${OCI}.index.v1+json`,
    manifests: [{ ...manifest, platform: { architecture, os: 'linux' }, annotations }],
  }),
);
writeFileSync(
  `${folder}/manifest.json`,
  json([{ Config: pathOf(config), RepoTags: [tag], Layers: layers.map(({ descriptor }) => pathOf(descriptor)) }]),
);
