import send from '@fastify/send';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isLoopback } from '../../../shared/network/addresses.js';
import { Refusal, invalidField } from '../../domain/refusal.js';
import type { Release, ReleaseFile } from '../../host-release/release-file.js';
import { checkEnrollmentToken } from '../../services/machines/enrollment.js';
import type { App } from '../../services/parts/parts.js';
import { hashToken } from '../../services/secrets/tokens.js';
import { PUBLIC, notFound } from '../access/policy.js';
import { text } from '../schema/schemas.js';
import { installScript } from './script.js';

/** What a build of releases puts beside the tarball. A host whose owner has the public key asks for them. */
const SIGNATURES = ['SHA256SUMS', 'SHA256SUMS.minisig'];

/**
 * Serves the script that makes a machine a GPU host, and the release that the script installs. The release goes only to whoever has a
 * usable enrollment token, which stays unused. The addresses in the script are settings: nothing of a request gets into it.
 */
export function installRoutes(release: ReleaseFile) {
  return (app: FastifyInstance, platform: App): void => {
    const config = { policy: PUBLIC } as const;
    const script = { hide: true, operationId: 'getInstallScript', summary: 'The script that installs the agent' };
    app.get(
      '/install',
      { config, schema: { ...script, response: { 200: text('The script') } } },
      async (request, reply) => {
        requireEncryption(request);
        const { publicUrl: url, publicGrpcAddress: grpcAddress } = platform;
        if (url === null || grpcAddress === null) throw notFound();
        const { name, sha256 } = await readable(release);
        void reply
          .type('text/plain; charset=utf-8')
          .headers({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' });
        return installScript({ url, grpcAddress, name, sha256 });
      },
    );
    for (const [index, file] of ['release', ...SIGNATURES].entries()) {
      const about = { hide: true, operationId: `getAgentRelease${index}`, summary: 'A file of the release for hosts' };
      const schema = { ...about, response: { 200: text('The file') } };
      app.get(`/install/${file}`, { config, schema }, async (request, reply) => {
        requireEncryption(request);
        const token = tokenOf(request);
        checkEnrollmentToken(platform, token);
        const { name, folder } = await readable(release);
        const wanted = encodeURIComponent(file === 'release' ? name : file);
        const options = { root: folder, cacheControl: false, dotfiles: 'allow' } as const;
        const opened = await release.downloads.open(hashToken(token), () => send(request.raw, wanted, options));
        void reply.code(opened.statusCode as 200).headers({ ...opened.headers, 'Cache-Control': 'no-store' });
        return reply.send(opened.stream);
      });
    }
  };
}

/** Refuses a request that others on its way could read or change. */
function requireEncryption({ protocol, ip }: FastifyRequest): void {
  if (protocol === 'https' || isLoopback(ip)) return;
  throw invalidField('', 'use https: what a host installs must not be changed on its way');
}

async function readable(release: ReleaseFile): Promise<Release> {
  try {
    return await release.read();
  } catch {
    throw new Refusal('UNAVAILABLE', 'the release that GPURENT_HOST_RELEASE names cannot be read; ask the operator');
  }
}

function tokenOf({ headers: { authorization = '' } }: FastifyRequest): string {
  return /^Bearer (\S+)$/.exec(authorization)?.[1] ?? '';
}
