import {
  Server,
  ServerCredentials,
  status,
  type Metadata,
  type ServerUnaryCall,
  type sendUnaryData,
} from '@grpc/grpc-js';
import { SetupError, messageOf } from '../../shared/coded-error.js';
import {
  AgentServiceService,
  type AgentServiceServer,
  type EnrollRequest,
  type EnrollResponse,
} from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { Logger } from '../../shared/logger.js';
import { GATEWAY_OPTIONS } from '../../shared/protocol.js';
import { Refusal } from '../domain/refusal.js';
import { enrollHost } from '../services/hosts/enrollment.js';
import type { Platform } from '../services/platform.js';
import { serveHost } from './host-session.js';

/** Where agents dial in. */
export class Gateway {
  private readonly server = new Server(GATEWAY_OPTIONS);

  constructor(
    private readonly platform: Platform,
    private readonly logger: Logger,
  ) {
    const service: AgentServiceServer = {
      enroll: (call, callback) => this.enroll(call, callback),
      connect: (stream) => serveHost(platform, logger, stream, bearer(stream.metadata)),
    };
    this.server.addService(AgentServiceService, service);
  }

  /** Binds `host:port` (port 0: any) and answers the address bound. */
  async listen(address: string): Promise<string> {
    const port = await new Promise<number>((resolve, reject) => {
      this.server.bindAsync(address, ServerCredentials.createInsecure(), (error, bound) =>
        error ? reject(error) : resolve(bound),
      );
    }).catch((error: unknown) => {
      throw new SetupError(`cannot listen for agents on ${address}: ${messageOf(error)}`);
    });
    return address.replace(/:\d+$/, `:${port}`);
  }

  /** Ends the streams of all hosts; they will dial again. */
  async close(): Promise<void> {
    this.platform.hosts.closeAll('the control plane is stopping');
    await new Promise<void>((resolve) => {
      this.server.tryShutdown(() => resolve());
      // Streams whose host does not read their end are cut.
      this.platform.clock.schedule(1_000, () => this.server.forceShutdown());
    });
  }

  private enroll(call: ServerUnaryCall<EnrollRequest, EnrollResponse>, callback: sendUnaryData<EnrollResponse>): void {
    try {
      const { token, inventory } = call.request;
      if (!inventory?.name)
        return callback({ code: status.INVALID_ARGUMENT, details: 'an inventory with a name is needed' });
      const enrolled = enrollHost(this.platform, token, inventory);
      this.logger.info({ hostId: enrolled.hostId, name: inventory.name, peer: call.getPeer() }, 'host enrolled');
      callback(null, enrolled);
    } catch (error) {
      if (error instanceof Refusal) return callback({ code: status.PERMISSION_DENIED, details: error.message });
      this.logger.error({ err: error }, 'enrolment failed');
      callback({ code: status.INTERNAL, details: 'internal error' });
    }
  }
}

function bearer(metadata: Metadata): string {
  const [value] = metadata.get('authorization');
  return typeof value === 'string' ? value.replace(/^Bearer /, '') : '';
}
