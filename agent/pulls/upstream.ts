import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { PullRefused, type PullRefusal } from '../domain/pull-failure.js';
import { parseChallenge } from './challenge.js';
import { discard, type Connections } from './connections.js';
import type { Credentials } from './order.js';
import { readWhole } from './read-whole.js';

const MOST_REDIRECTS = 5;
const REDIRECTS: readonly (number | undefined)[] = [301, 302, 303, 307, 308];
const MOST_TOKEN_BYTES = 64 * 1024;
const TOKEN_MS = 120_000;
const TOKEN = /^[\x21-\x7e]{1,32768}$/;
const REFUSED_BY_STATUS: Readonly<Record<number, PullRefusal>> = {
  401: 'unauthorized',
  403: 'unauthorized',
  404: 'not_found',
  429: 'rate_limited',
};

export interface UpstreamOrder {
  /** `https://HOST[:PORT]`, or http. */
  origin: string;
  repository: string;
  credentials: Credentials | null;
}

export interface Ask {
  method: 'GET' | 'HEAD';
  /** Path below the repository: `manifests/TAG` or `blobs/DIGEST`. */
  path: string;
  headers: OutgoingHttpHeaders;
  signal: AbortSignal;
}

type Authorization = { origin: string; value: string } | undefined;

/** Requests one repository from one registry. */
export class Upstream {
  private authorization: Authorization;
  private authorizing: Promise<Authorization> | undefined;

  constructor(
    private readonly order: UpstreamOrder,
    private readonly connections: Connections,
  ) {}

  /** Returns the registry's answer, which is a success. Throws PullRefused. */
  async ask({ method, path, headers, signal }: Ask): Promise<IncomingMessage> {
    const url = new URL(`/v2/${this.order.repository}/${path}`, this.order.origin);
    const used = this.authorization;
    const first = await this.follow({ method, url, headers, signal }, used);
    if (first.response.statusCode !== 401 || first.origin !== url.origin) return requireSuccess(first.response);
    discard(first.response);
    // Another request can have got a token meanwhile.
    if (this.authorization === used) await this.authorize(first.response.headers['www-authenticate'] ?? '');
    const second = await this.follow({ method, url, headers, signal }, this.authorization);
    return requireSuccess(second.response);
  }

  /** Follows redirects. The authorization goes to no other origin than its own. */
  private async follow(
    { method, url, headers, signal }: Omit<Ask, 'path'> & { url: URL },
    authorization: Authorization,
  ): Promise<{ response: IncomingMessage; origin: string }> {
    let at = url;
    for (let followed = 0; followed <= MOST_REDIRECTS; followed++) {
      const proof = authorization?.origin === at.origin ? { authorization: authorization.value } : {};
      const response = await this.connections.request({ method, url: at, headers: { ...headers, ...proof }, signal });
      const { location } = response.headers;
      if (!REDIRECTS.includes(response.statusCode) || location === undefined) return { response, origin: at.origin };
      discard(response);
      at = addressOf(location, at);
    }
    throw new PullRefused('unsound');
  }

  /** Gets an authorization. All requests that wait for one share a single request for a token. */
  private async authorize(header: string): Promise<void> {
    this.authorizing ??= this.proofFor(header).finally(() => (this.authorizing = undefined));
    this.authorization = await this.authorizing;
  }

  private async proofFor(header: string): Promise<Authorization> {
    const challenge = parseChallenge(header);
    const { origin, credentials } = this.order;
    if (challenge?.scheme === 'bearer')
      return { origin, value: `Bearer ${await this.token(challenge.realm, challenge.service)}` };
    if (!challenge || !credentials) throw new PullRefused('unauthorized');
    return { origin, value: basic(credentials) };
  }

  private async token(realm: string, service: string): Promise<string> {
    const { origin, repository, credentials } = this.order;
    const url = addressOf(realm);
    // Without TLS, only the registry itself gets the password: whoever reads its unencrypted traffic knows the password
    // anyway.
    if (url.protocol !== 'https:' && url.origin !== origin) throw new PullRefused('without_tls');
    url.searchParams.set('service', service);
    url.searchParams.set('scope', `repository:${repository}:pull`);
    if (credentials) url.searchParams.set('account', credentials.username);
    const proof = credentials ? { origin: url.origin, value: basic(credentials) } : undefined;
    const signal = AbortSignal.timeout(TOKEN_MS);
    const { response } = await this.follow({ method: 'GET', url, headers: {}, signal }, proof);
    const answer = await readWhole(requireSuccess(response), MOST_TOKEN_BYTES);
    return tokenIn(answer.toString());
  }
}

function basic({ username, password }: Credentials): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

function tokenIn(answer: string): string {
  try {
    const { token, access_token } = JSON.parse(answer) as { token?: unknown; access_token?: unknown };
    for (const found of [token, access_token]) if (typeof found === 'string' && TOKEN.test(found)) return found;
  } catch {
    // Without JSON there is no token.
  }
  throw new PullRefused('unauthorized');
}

/** Parses an http or https URL. Throws PullRefused for anything else. */
function addressOf(text: string, base?: URL): URL {
  if (!URL.canParse(text, base?.href)) throw new PullRefused('unsound');
  const url = new URL(text, base);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new PullRefused('unsound');
  return url;
}

/**
 * Returns an answer that is a success. Discards any other, so that no byte of it is passed on, and throws PullRefused.
 */
function requireSuccess(response: IncomingMessage): IncomingMessage {
  const { statusCode = 0 } = response;
  if (statusCode === 200 || statusCode === 206) return response;
  discard(response);
  throw new PullRefused(REFUSED_BY_STATUS[statusCode] ?? 'server_error');
}
