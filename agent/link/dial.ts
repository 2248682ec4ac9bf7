import type { ClientDuplexStream } from '@grpc/grpc-js';
import type { AgentMessage, ControlMessage } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { channelOf, clientOf, metadataOf } from './channel.js';
import type { Identity } from './identity.js';

/** One stream to the control plane, as far as the link uses it. `cancel` also lets go of the connection under it. */
export type Wire = Pick<ClientDuplexStream<AgentMessage, ControlMessage>, 'on' | 'write' | 'cancel'>;

export type Dial = () => Wire;

/** Opens streams to the control plane that the identity names, as it is then: it is renewed while the agent lives. */
export function dialer(identity: () => Identity): Dial {
  return () => {
    const { controlPlane, proof } = identity();
    const client = clientOf(controlPlane, channelOf(proof));
    const stream = client.connect(metadataOf(proof));
    const cancel = stream.cancel.bind(stream);
    stream.cancel = () => {
      cancel();
      client.close();
    };
    return stream;
  };
}
