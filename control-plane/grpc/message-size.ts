import { AgentServiceService, type AgentMessage } from '../../shared/gen/gpurent/agent/v1/agent.js';

const UNIT_BYTES = 4_096;
const sizes = new WeakMap<AgentMessage, number>();
const { connect } = AgentServiceService;

/** The service as the protocol has it; how large each message of a host was is known from here on. */
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

/** What a message costs who takes it: one, and one more for each four KiB. */
export function unitsOf(message: AgentMessage): number {
  return 1 + Math.floor((sizes.get(message) ?? 0) / UNIT_BYTES);
}
