import { Metadata, credentials, type ClientDuplexStream } from '@grpc/grpc-js';
import { AgentServiceClient, type AgentMessage, type ControlMessage } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { AGENT_OPTIONS } from '../../shared/protocol.js';
import type { Identity } from './identity.js';

/** One stream to the control plane, as far as the link uses it. `cancel` also lets go of the connection under it. */
export type Wire = Pick<ClientDuplexStream<AgentMessage, ControlMessage>, 'on' | 'write' | 'cancel'>;

export type Dial = () => Wire;

/** Opens streams to the control plane that the identity names. */
export function dialer({ controlPlane, credential }: Identity): Dial {
  return () => {
    const client = new AgentServiceClient(controlPlane, credentials.createInsecure(), AGENT_OPTIONS);
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${credential}`);
    const stream = client.connect(metadata);
    const cancel = stream.cancel.bind(stream);
    stream.cancel = () => {
      cancel();
      client.close();
    };
    return stream;
  };
}
