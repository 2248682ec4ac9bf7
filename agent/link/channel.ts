import { Metadata, credentials, type ChannelCredentials, type ClientOptions } from '@grpc/grpc-js';
import { AgentServiceClient } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { AGENT_OPTIONS } from '../../shared/protocol.js';
import { CONTROL_PLANE_NAME } from '../../shared/tls.js';
import type { Proof } from './identity.js';
import type { Trust } from './trust.js';

/** How a control plane is spoken to; null: in plain text. */
export type Channel = { trust: Trust; key?: string; certificate?: string } | null;

/** A client of the control plane at `host:port`. */
export function clientOf(controlPlane: string, channel: Channel): AgentServiceClient {
  return new AgentServiceClient(controlPlane, ...connectionBy(channel));
}

/** What grpc needs to know of a channel. */
export function connectionBy(channel: Channel): [ChannelCredentials, ClientOptions] {
  if (channel === null) return [credentials.createInsecure(), AGENT_OPTIONS];
  const { trust, key, certificate } = channel;
  const asBuffer = (pem: string | undefined) => (pem === undefined ? null : Buffer.from(pem));
  return [
    credentials.createSsl(asBuffer(trust.authority), asBuffer(key), asBuffer(certificate)),
    trust.own ? { ...AGENT_OPTIONS, 'grpc.ssl_target_name_override': CONTROL_PLANE_NAME } : AGENT_OPTIONS,
  ];
}

/** How a host that is enrolled speaks. */
export function channelOf(proof: Proof): Channel {
  return proof.kind === 'certificate' ? proof : null;
}

/** What goes with each call. */
export function metadataOf(proof: Proof): Metadata {
  const metadata = new Metadata();
  if (proof.kind === 'secret') metadata.set('authorization', `Bearer ${proof.credential}`);
  return metadata;
}
