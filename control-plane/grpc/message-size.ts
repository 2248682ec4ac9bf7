import { AgentServiceService, type AgentMessage } from '../../shared/gen/gpurent/agent/v1/agent.js';

const UNIT_BYTES = 4_096;
const sizes = new WeakMap<AgentMessage, number>();
const { connect } = AgentServiceService;

/** The service of the protocol, which also records the size of each message of a host. */
export const SIZED_SERVICE: typeof AgentServiceService = {
  ...AgentServiceService,
  connect: {
    ...connect,
    requestDeserialize: (bytes: Buffer) => {
      const message = connect.requestDeserialize(bytes);
      sizes.set(message, bytes.length);
      return message;
    },
  },
};

/** Returns the cost of a message against the message limit: one unit, and one more for each 4 KiB. */
export function unitsOf(message: AgentMessage): number {
  return 1 + Math.floor((sizes.get(message) ?? 0) / UNIT_BYTES);
}
