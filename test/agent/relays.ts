import type { RequestListener } from 'node:http';
import { pullFailure } from '../../agent/domain/pull-failure.js';
import { RELAY_USER, type RelayOrder } from '../../agent/pulls/order.js';
import { Relay, type RelayParts } from '../../agent/pulls/relay.js';
import { serveHttp, type FakeServer } from '../harness/fake-registry.js';

const SECRET = 'a secret of this pull';
export const DIGEST = `sha256:${'a1'.repeat(32)}`;
/** By this a relay knows Docker. */
export const AUTHORIZATION = `Basic ${Buffer.from(`${RELAY_USER}:${SECRET}`).toString('base64')}`;
/** What a registry may be at in these tests; 127.0.0.2 stands for the host's networks. */
const ALLOWED = ['127.0.0.1/32'];
export const LOOPBACK = ['127.0.0.0/8', '::1/128'];

const open: { stop(): void }[] = [];

/** Ends all servers and relays of a test. */
export function stopAll(): void {
  for (const each of open.splice(0)) each.stop();
}

export async function serve(...given: Parameters<typeof serveHttp>): Promise<FakeServer> {
  const server = await serveHttp(...given);
  open.push(server);
  return server;
}

export interface Answer {
  status: number;
  body: string;
  headers: Headers;
}
export type Ask = (path: string, init?: RequestInit) => Promise<Answer>;

/** A relay for `team/app:1`. Returns how to ask it in Docker's place. */
export async function relayTo(origin: string, order: Partial<RelayOrder> = {}, parts: RelayParts = {}): Promise<Ask> {
  const whole: RelayOrder = {
    registries: [{ origin, isMirror: false, authorities: [] }],
    repository: 'team/app',
    reference: '1',
    insecureNetworks: LOOPBACK,
    credentials: null,
    allowed: ALLOWED,
    mostBytes: 1_000_000,
    secret: SECRET,
    ...order,
  };
  const relay = new Relay(whole, { ownAddresses: [], ...parts });
  const port = await relay.listen();
  open.push({ stop: () => relay.close() });
  return async (path, init = {}) => {
    const headers = { authorization: AUTHORIZATION, ...(init.headers as Record<string, string> | undefined) };
    const response = await fetch(`http://127.0.0.1:${port}/v2/${path}`, { ...init, headers });
    const body = await response.text().catch(() => 'cut off');
    return { status: response.status, body, headers: response.headers };
  };
}

export const manifest = (ask: Ask) => ask('gpurent/pulling/manifests/1');
export const blob = (ask: Ask) => ask(`gpurent/pulling/blobs/${DIGEST}`);
/** What Docker would say of an answer, in the words that a renter reads. */
export const reason = ({ status, body }: Answer) => (status < 400 ? 'served' : pullFailure(body));
export const redirect =
  (location: string, status = 307): RequestListener =>
  (_, response) =>
    response.writeHead(status, { location, 'content-length': 0 }).end();
