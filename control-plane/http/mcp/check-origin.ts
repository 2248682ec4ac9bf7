import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { browserHost } from '../../domain/browser-host.js';
import { Refusal } from '../../domain/refusal.js';
import type { App } from '../../services/parts/parts.js';

/**
 * Refuses with COOKIE_REFUSED what a page in a browser may have sent: a request with an `Origin` other than the configured address of
 * this control plane, and one for a name that is not its own, behind which DNS could have put this server. Programs send no `Origin`.
 */
export function checkOrigin({ publicUrl }: Pick<App, 'publicUrl'>, { headers, host }: FastifyRequest): void {
  const { origin } = headers;
  if (origin !== undefined && origin !== publicUrl)
    throw new Refusal('COOKIE_REFUSED', 'pages of other origins may not use this address; programs send no Origin');
  const name = browserHost(host);
  if (name !== undefined && (publicUrl === null || isOwnName(name, publicUrl))) return;
  throw new Refusal(
    'COOKIE_REFUSED',
    `this control plane is not reached at the name in your header Host; use ${publicUrl}`,
  );
}

/** Names that no foreign DNS server can give to this server: the configured one, addresses, and localhost. */
function isOwnName(name: string, publicUrl: string): boolean {
  const isAddress = isIP(name.replace(/^\[|\]$/g, '')) !== 0;
  return isAddress || name === 'localhost' || name === new URL(publicUrl).hostname;
}
