import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { GATEWAY_LIMITS } from '../../control-plane/grpc/gateway.js';
import { CONNECTION_LIMITS } from '../../control-plane/http/limits/connections.js';
import { STREAM_LIMITS } from '../../control-plane/http/events/event-streams.js';

/** Hosts that are connected, and files and connections that the control plane opens itself. */
const HOSTS = 10_000;
const OWN = 4_096;

it('strangers use fewer open files than the service may have: hosts, the database and mails find some left', () => {
  const unit = readFileSync(new URL('../../packaging/gpurent-control-plane.service', import.meta.url), 'utf8');
  const files = Number(/^LimitNOFILE=(\d+)$/m.exec(unit)?.[1]);
  const atGateway = GATEWAY_LIMITS.unproven + GATEWAY_LIMITS.waiting;
  expect(CONNECTION_LIMITS.inAll + atGateway + HOSTS + OWN).toBeLessThan(files);
  expect(STREAM_LIMITS.inAll).toBeLessThanOrEqual(CONNECTION_LIMITS.inAll / 2);
});
