import { AgentServiceService, type AgentMessage } from '../../shared/gen/gpurent/agent/v1/agent.js';

const UNIT_BYTES = 4_096;
const GPUS_OF_A_UNIT = 8;
const sizes = new WeakMap<AgentMessage, number>();
const malformed = new WeakSet<AgentMessage>();
const { connect } = AgentServiceService;

/**
 * The service of the protocol, which also records the size of each message of a host. It never throws: if the library ended a stream
 * while the session is writing to it, the host would not learn of its end.
 */
export const SIZED_SERVICE: typeof AgentServiceService = {
  ...AgentServiceService,
  connect: {
    ...connect,
    requestDeserialize: (bytes: Buffer) => {
      const message = decode(bytes);
      sizes.set(message, bytes.length);
      return message;
    },
  },
};

function decode(bytes: Buffer): AgentMessage {
  try {
    return connect.requestDeserialize(bytes);
  } catch {
    const empty: AgentMessage = { message: undefined };
    malformed.add(empty);
    return empty;
  }
}

/** Tells whether the bytes of a message could not be decoded. */
export function isMalformed(message: AgentMessage): boolean {
  return malformed.has(message);
}

/**
 * Returns the cost of a message against the message limit: one unit, and one more for each 4 KiB. Of a hello also one for each workload
 * and for every eight GPUs of workloads: each is looked up or stored before anybody else is served.
 */
export function unitsOf(message: AgentMessage): number {
  return 1 + Math.floor((sizes.get(message) ?? 0) / UNIT_BYTES) + workOf(message);
}

function workOf({ message }: AgentMessage): number {
  if (message?.$case !== 'hello') return 0;
  const { instances } = message.value;
  const gpus = instances.reduce((sum, { gpuUuids }) => sum + gpuUuids.length, 0);
  return instances.length + Math.floor(gpus / GPUS_OF_A_UNIT);
}
