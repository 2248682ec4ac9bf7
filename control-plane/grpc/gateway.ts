import {
  Server,
  ServerCredentials,
  status,
  type ServerDuplexStream,
  type ServerOptions,
  type ServerUnaryCall,
  type sendUnaryData,
} from '@grpc/grpc-js';
import { ConnectionGate } from '../../shared/connection-gate.js';
import { SetupError, messageOf } from '../../shared/coded-error.js';
import {
  type AgentMessage,
  type AgentServiceServer,
  type ControlMessage,
  type EnrollRequest,
  type EnrollResponse,
  type RenewRequest,
  type RenewResponse,
} from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { Logger } from '../../shared/logger.js';
import { parseAddress } from '../../shared/network/addresses.js';
import { GATEWAY_OPTIONS, STREAMS_OF_A_HOST } from '../../shared/protocol.js';
import { fingerprintOf } from '../../shared/network/tls.js';
import type { ReleaseFile } from '../host-release/release-file.js';
import { diskFull } from '../domain/disk-room.js';
import { Refusal } from '../domain/refusal.js';
import { hashToken } from '../services/secrets/tokens.js';
import { LEEWAY_MS } from '../services/secrets/authority.js';
import { renewCertificate, type Proof } from '../services/machines/credentials.js';
import { certifyHost, enrollHost, type Enrolled } from '../services/machines/enrollment.js';
import type { HostRefusal } from '../domain/machines/host-refusal.js';
import { countMachines } from '../services/machines/machines.js';
import type { App } from '../services/parts/parts.js';
import { loadRelease } from './load-release.js';
import { HelloQueue } from './hello-queue.js';
import { RefusalLimiter } from './refusal-limiter.js';
import { serveHost } from './host-session.js';
import { SIZED_SERVICE } from './message-size.js';

type Call = Pick<ServerDuplexStream<AgentMessage, ControlMessage>, 'metadata' | 'getAuthContext' | 'getPeer'>;

const GRACE_MS = 1_000;
/** A host needs one connection; many hosts can share one address. */
export const GATEWAY_LIMITS = {
  unproven: 512,
  unprovenOfOneAddress: 384,
  waiting: 16384,
  waitingOfOneAddress: 12288,
  proven: 5e4,
  perTurn: 8,
  waitMs: 16e3,
};

/** The gRPC server that agents dial. */
export class Gateway {
  private readonly service: AgentServiceServer;
  private readonly refusals: RefusalLimiter;
  private readonly hellos = new HelloQueue();
  private server: Server | undefined;
  private gate: ConnectionGate | undefined;
  private secured = false;

  constructor(
    private readonly platform: App,
    private readonly logger: Logger,
    private readonly onRefused: (reason: HostRefusal) => void,
    release: ReleaseFile | undefined,
    private readonly options: ServerOptions = {},
  ) {
    this.service = {
      enroll: (call, callback) => this.enroll(call, callback),
      renew: (call, callback) => this.renew(call, callback),
      loadRelease: (stream) => {
        const peer = stream.getPeer();
        loadRelease(platform, release, this.proofOf(stream), stream, () => this.gate?.prove(peer));
      },
      connect: (stream) => {
        const peer = stream.getPeer();
        const host = { stream, proof: this.proofOf(stream), hellos: this.hellos, onRefused };
        const isKnown = serveHost(platform, this.logger.child({ peer }), host);
        if (isKnown) this.gate?.prove(peer);
      },
    };
    this.refusals = new RefusalLimiter(platform.clock);
  }

  /**
   * Binds `host:port` (port 0: any) and returns the bound address. Without TLS, hosts authenticate by a secret. Throws
   * SetupError.
   */
  async listen(address: string, tls?: ServerCredentials): Promise<string> {
    this.secured = tls !== undefined;
    this.platform.connections.expect(countMachines(this.platform));
    const server = new Server({ ...GATEWAY_OPTIONS, ...(tls ? STREAMS_OF_A_HOST : {}), ...this.options });
    server.addService(SIZED_SERVICE, this.service);
    this.server = server;
    const injector = server.createConnectionInjector(tls ?? ServerCredentials.createInsecure());
    this.gate = new ConnectionGate(this.platform.clock, (socket) => injector.injectConnection(socket), GATEWAY_LIMITS);
    const at = parseAddress('GPURENT_GRPC_ADDRESS', address);
    // Node binds a name at only one of its addresses, but agents can dial localhost at either.
    const host = at.host === 'localhost' ? '127.0.0.1' : at.host;
    const port = await this.gate.listen(host, at.port).catch((error: unknown) => {
      throw new SetupError(`cannot listen for agents on ${address}: ${messageOf(error)}`);
    });
    return address.replace(/:\d+$/, `:${port}`);
  }

  /** Ends the streams of all hosts within a second; the hosts dial again. */
  async close(): Promise<void> {
    this.platform.connections.closeAll('the control plane is stopping');
    this.gate?.close();
    const { server } = this;
    await new Promise<void>((resolve) => {
      if (!server) return resolve();
      // Cuts streams whose host does not read their end. Nothing waits for connections on which nothing was sent.
      const cut = this.platform.clock.schedule(GRACE_MS, () => {
        server.forceShutdown();
        resolve();
      });
      server.tryShutdown(() => {
        cut.cancel();
        resolve();
      });
    });
    this.gate?.destroy();
  }

  private enroll(call: ServerUnaryCall<EnrollRequest, EnrollResponse>, callback: sendUnaryData<EnrollResponse>): void {
    this.answer(call, callback, async () => {
      const enrolled = await this.makeHost(call.request);
      this.logger.info({ hostId: enrolled.hostId, peer: call.getPeer() }, 'host enrolled');
      return enrolled;
    });
  }

  private async makeHost({ token, inventory, hostId, earlier, certificateRequest }: EnrollRequest): Promise<Enrolled> {
    if (!inventory?.name) throw new Refusal('VALIDATION_FAILED', 'the inventory must have a name');
    const newcomer = { token, inventory, hostId, earlier };
    // One that enrolls again reports what has ended.
    if (this.platform.room.isFull && hostId === '') throw diskFull();
    return this.secured
      ? certifyHost(this.platform, newcomer, certificateRequest)
      : enrollHost(this.platform, newcomer);
  }

  private renew(call: ServerUnaryCall<RenewRequest, RenewResponse>, callback: sendUnaryData<RenewResponse>): void {
    this.answer(call, callback, async () => {
      const proof = this.proofOf(call);
      if (!this.secured)
        throw new Refusal('TOKEN_INVALID', 'this control plane does not use TLS, so it issues no certificates');
      const certificate = await renewCertificate(this.platform, proof, call.request.certificateRequest);
      this.logger.info({ peer: call.getPeer() }, 'certificate renewed');
      return { certificate };
    });
  }

  /** Returns the proof of a host's identity. Without a credential it contains a hash that belongs to no host. */
  private proofOf(call: Call): Proof {
    if (this.secured) {
      const shown = call.getAuthContext().sslPeerCertificate;
      if (!shown) return { hash: '' };
      const [from, to] = [Date.parse(shown.valid_from), Date.parse(shown.valid_to)];
      const certified = { hostId: String(shown.subject.CN), issuedAt: from + LEEWAY_MS, expiresAt: to };
      return { hash: fingerprintOf(shown.raw), certified };
    }
    const [value] = call.metadata.get('authorization');
    return { hash: hashToken(typeof value === 'string' ? value.replace(/^Bearer /, '') : '') };
  }

  private answer<T>(call: Pick<Call, 'getPeer'>, callback: sendUnaryData<T>, work: () => Promise<T>): void {
    const peer = call.getPeer();
    if (!this.refusals.admits(peer)) {
      this.onRefused('flooded');
      return callback({
        code: status.RESOURCE_EXHAUSTED,
        details: 'too many refused attempts from this address; try again in a minute',
      });
    }
    work().then(
      (result) => {
        this.refusals.succeeded(peer);
        this.gate?.prove(peer);
        callback(null, result);
      },
      (error: unknown) => {
        this.onRefused(error instanceof Refusal ? 'call' : 'failed');
        if (error instanceof Refusal) {
          this.logger.warn({ peer, code: error.code }, `a host's call was refused: ${error.message}`);
          const code = error.code === 'VALIDATION_FAILED' ? status.INVALID_ARGUMENT : status.PERMISSION_DENIED;
          return callback({ code, details: error.message });
        }
        this.logger.error({ err: error, peer }, `a host's call failed: ${messageOf(error)}`);
        callback({ code: status.INTERNAL, details: 'internal error' });
      },
    );
  }
}
