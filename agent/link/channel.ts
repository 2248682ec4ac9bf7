import { Metadata, credentials, type ChannelCredentials, type ClientOptions } from '@grpc/grpc-js';
import { isIP } from 'node:net';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import { AgentServiceClient } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { AGENT_OPTIONS } from '../../shared/protocol.js';
import { parseAddress } from '../../shared/addresses.js';
import { CONTROL_PLANE_NAME } from '../../shared/tls.js';
import type { Proof } from './identity.js';
import type { Trust } from './trust.js';

const NO_NAME = 'address.invalid';

/** How a control plane is spoken to; null: in plain text. */
export type Channel = { trust: Trust; key?: string; certificate?: string } | null;

/** A client of the control plane at `host:port`. */
export function clientOf(controlPlane: string, channel: Channel): AgentServiceClient {
  return new AgentServiceClient(controlPlane, ...connectionBy(controlPlane, channel));
}

/** What grpc needs to know of a channel to `host:port`. */
export function connectionBy(controlPlane: string, channel: Channel): [ChannelCredentials, ClientOptions] {
  if (channel === null) return [credentials.createInsecure(), AGENT_OPTIONS];
  const { trust, key, certificate } = channel;
  const asBuffer = (pem: string | undefined) => (pem === undefined ? null : Buffer.from(pem));
  const name = trust.own ? CONTROL_PLANE_NAME : parseAddress('the control plane', controlPlane).host;
  const verify = { checkServerIdentity: (_: string, shown: PeerCertificate) => checkServerIdentity(name, shown) };
  return [
    credentials.createSsl(asBuffer(trust.authority), asBuffer(key), asBuffer(certificate), verify),
    {
      ...AGENT_OPTIONS,
      // Of an IP address the library would make the name to ask for, which TLS does not allow and newer Nodes refuse.
      'grpc.ssl_target_name_override': isIP(name) === 0 ? name : NO_NAME,
      'grpc.default_authority': controlPlane,
    },
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
