import { Metadata, credentials, type ChannelCredentials, type ClientOptions } from '@grpc/grpc-js';
import { isIP } from 'node:net';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import { AgentServiceClient } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { AGENT_OPTIONS } from '../../shared/protocol.js';
import { parseAddress } from '../../shared/network/addresses.js';
import { CONTROL_PLANE_NAME } from '../../shared/network/tls.js';
import type { Proof } from './identity.js';
import type { Trust } from './trust.js';

const NO_NAME = 'address.invalid';

/** The TLS settings of a connection to a control plane; null: plain text. */
export type Channel = { trust: Trust; key?: string; certificate?: string } | null;

/** Creates a client of the control plane at `host:port`. */
export function clientOf(controlPlane: string, channel: Channel): AgentServiceClient {
  return new AgentServiceClient(controlPlane, ...connectionBy(controlPlane, channel));
}

/** Returns the credentials and options of a gRPC connection to `host:port`. */
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
      // For an IP address the library would send it as the server name, which TLS does not allow and newer Nodes refuse.
      'grpc.ssl_target_name_override': isIP(name) === 0 ? name : NO_NAME,
      'grpc.default_authority': controlPlane,
    },
  ];
}

/** Returns the channel of an enrolled host. */
export function channelOf(proof: Proof): Channel {
  return proof.kind === 'certificate' ? proof : null;
}

/** Returns the metadata of each call: the secret, for a host that uses plain text. */
export function metadataOf(proof: Proof): Metadata {
  const metadata = new Metadata();
  if (proof.kind === 'secret') metadata.set('authorization', `Bearer ${proof.credential}`);
  return metadata;
}
