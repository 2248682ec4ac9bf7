import type { ClientDuplexStream, ClientReadableStream } from '@grpc/grpc-js';
import type {
  AgentMessage,
  ControlMessage,
  LoadReleaseResponse,
  ReleaseFile,
} from '../../shared/gen/gpurent/agent/v1/agent.js';
import { channelOf, clientOf, metadataOf } from './channel.js';
import type { Identity } from './identity.js';

/** One stream to the control plane. `cancel` also closes its connection. */
export type Wire = Pick<ClientDuplexStream<AgentMessage, ControlMessage>, 'on' | 'write' | 'cancel'>;

export type Dial = () => Wire;

/** Returns a function that opens streams to the control plane. Each call reads the identity, because the agent renews it while it runs. */
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

/** The bytes of one file of a release, from an offset on. `cancel` also closes their connection. */
export type ReleaseStream = Pick<ClientReadableStream<LoadReleaseResponse>, 'on' | 'cancel'> &
  AsyncIterable<LoadReleaseResponse>;

export type OpenRelease = (file: ReleaseFile, offset: number) => ReleaseStream;

/** Returns a function that asks the control plane for files of a release, each over a connection of its own. */
export function releaseOpener(identity: () => Identity): OpenRelease {
  return (file, offset) => {
    const { controlPlane, proof } = identity();
    const client = clientOf(controlPlane, channelOf(proof));
    const stream = client.loadRelease({ file, offset }, metadataOf(proof));
    const cancel = stream.cancel.bind(stream);
    stream.cancel = () => {
      cancel();
      client.close();
    };
    return stream;
  };
}
