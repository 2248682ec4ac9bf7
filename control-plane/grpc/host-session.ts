import { Metadata, status, type ServerDuplexStream } from '@grpc/grpc-js';
import type { Timer } from '../../shared/clock.js';
import { messageOf } from '../../shared/coded-error.js';
import {
  CommandOutcome,
  type AgentMessage,
  type ControlMessage,
  type Hello,
} from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { Logger } from '../../shared/logger.js';
import { HEARTBEAT_MS, PROTOCOL_MAX, PROTOCOL_MIN, REDIAL_AFTER } from '../../shared/protocol.js';
import { MINUTE_MS } from '../../shared/time.js';
import { redialSpreadMs } from '../domain/machines/redial.js';
import type { HostRefusal } from '../domain/machines/host-refusal.js';
import { Refusal } from '../domain/refusal.js';
import { admitHost, type Proof } from '../services/machines/credentials.js';
import type { AgentStream } from '../services/connections/agent-connections.js';
import { paidTimesOf } from '../services/billing/limits/paid-until.js';
import type { App } from '../services/parts/parts.js';
import type { HelloQueue } from './hello-queue.js';
import { isMalformed, unitsOf } from './message-size.js';
import { isSuperseded } from '../services/connections/term.js';
import { handleHello, type HelloAnswer } from '../services/reconciler/hello.js';

import { receiveMeasurements } from '../services/reconciler/measurements.js';
import { recordFindings } from '../services/machines/findings.js';
import { recordUpgradeReport } from '../services/rollouts/report.js';
import { recordResult } from '../services/reconciler/command-results.js';
import { recordProgress, recordReport } from '../services/reconciler/workload-reports.js';
import { recordHeartbeat } from '../services/reconciler/heartbeat.js';

/** The part of a host's stream that its session uses. */
export type HostStream = Pick<ServerDuplexStream<AgentMessage, ControlMessage>, 'on' | 'write' | 'end' | 'emit'>;

const HELLO_MS = 10_000;
/** A hello costs more work than any later message. */
const CONNECT_UNITS = 100;
/** The characters of a host's code that a log line shows. */
const MOST_OF_A_CODE = 100;
/** A balance changes little within this time. */
const PAID_TIMES_EVERY_MS = MINUTE_MS;
/** The number of instances that one log line names. */
const MOST_NAMED = 20;
const IN_QUARANTINE = 'workloads are in quarantine: adopt or remove each, see GET /v1/operator/quarantine';
const FLOODED = 'this host has said too much at once; it may come back in a minute';
const MALFORMED = 'this host has sent a message that cannot be decoded';
const CROWDED = 'too many hosts are connecting at once';
/** How long a host waits that finds too many others. */
const CROWDED_MS = 15_000;

/** A host that dials in. */
export interface Dialing {
  stream: HostStream;
  proof: Proof;
  /** Where its hello waits for its turn; absent: it does not wait. */
  hellos?: HelloQueue;
  /** Is told why the host, or one of its messages, is refused. */
  onRefused?: (reason: HostRefusal) => void;
}

/** Serves a host's stream from its first message to its end. Returns whether the host is authenticated and not blocked. */
export function serveHost(platform: App, logger: Logger, host: Dialing): boolean {
  try {
    const machineId = admitHost(platform, host.proof);
    if (platform.connections.isBlocked(machineId) || !platform.connections.allows(machineId, 'facts', CONNECT_UNITS)) {
      refuse(host, 'flooded', status.RESOURCE_EXHAUSTED, FLOODED);
      return false;
    }
    new HostSession(platform, logger.child({ hostId: machineId }), host, machineId);
    return true;
  } catch (error) {
    logger.warn(`a host's stream was refused: ${messageOf(error)}`);
    if (error instanceof Refusal) refuse(host, 'identity', status.UNAUTHENTICATED, error.message);
    else refuse(host, 'failed', status.INTERNAL, 'internal error; dial again');
    return false;
  }
}

/** Refuses a stream. `redialAfterMs` asks the agent to dial again only after that time. */
function refuse(
  { stream, onRefused }: Dialing,
  reason: HostRefusal,
  code: status,
  details: string,
  redialAfterMs?: number,
): void {
  onRefused?.(reason);
  const metadata = new Metadata();
  if (redialAfterMs !== undefined) metadata.set(REDIAL_AFTER, String(redialAfterMs));
  // An error, and not a bare object: whoever hears it logs its message.
  stream.emit('error', Object.assign(new Error(details), { code, details, metadata }));
}

function overtakenBy(epoch: number, heard: number): string {
  const other =
    heard > epoch
      ? `a newer control plane (epoch ${heard}, here it is ${epoch})`
      : 'another control plane of this epoch';
  return `this host has heard of ${other}: this control plane runs on a superseded copy of the database; stop it, or make its copy the current one with "gpurent-control-plane restore"`;
}

class HostSession implements AgentStream {
  private greeted = false;
  /** Whether the hello waits for its turn. */
  private isQueued = false;
  congested = false;
  private closed = false;
  private readonly helloDeadline: Timer;
  /** When to send paid times next, in monotonic milliseconds; Infinity for an agent that does not use them. */
  private paidTimesAt = Infinity;
  /** Whether the agent knows that nothing here is paid for: it need not be told again. */
  private hasNothingPaid = false;

  constructor(
    private readonly platform: App,
    private readonly logger: Logger,
    private readonly host: Dialing,
    private readonly machineId: string,
  ) {
    const { stream } = host;
    stream.on('data', (message: AgentMessage) => this.receive(message));
    this.helloDeadline = platform.clock.schedule(HELLO_MS, () => this.close('the host sent no hello in time'));
    stream.on('drain', () => (this.congested = false));
    stream.on('end', () => this.close('the host has ended its stream'));
    stream.on('error', (error) => this.lost(messageOf(error)));
    stream.on('close', () => this.lost('the stream is closed'));
  }

  send(message: ControlMessage): boolean {
    if (this.closed || this.congested) return false;
    this.congested = !this.host.stream.write(message);
    return true;
  }

  close(reason: string): void {
    if (this.closed) return;
    this.lost(reason);
    this.host.stream.end();
  }

  private lost(reason: string): void {
    if (this.closed) return;
    this.closed = true;
    this.helloDeadline.cancel();
    if (!this.greeted) this.logger.info({ reason }, 'a host is gone before it was greeted');
    if (!this.platform.connections.detach(this.machineId, this)) return;
    this.platform.logs.hostLost(this.machineId);
    this.platform.measurementQueries.hostLost(this.machineId);
    this.logger.info({ reason }, 'host disconnected');
  }

  private receive(message: AgentMessage): void {
    if (this.closed) return;
    const what = message.message?.$case === 'logChunk' ? 'logs' : 'facts';
    if (!this.platform.connections.allows(this.machineId, what, unitsOf(message))) return this.cutOff();
    if (isMalformed(message)) return refuse(this.host, 'malformed', status.INVALID_ARGUMENT, MALFORMED);
    if (this.greeted || !this.host.hellos) return this.process(message);
    if (this.isQueued)
      return refuse(this.host, 'order', status.FAILED_PRECONDITION, 'a host must wait for its welcome');
    this.isQueued = true;
    this.helloDeadline.cancel();
    const greet = () => this.closed || this.process(message);
    if (!this.host.hellos.add(greet, unitsOf(message)))
      refuse(this.host, 'crowded', status.RESOURCE_EXHAUSTED, CROWDED, CROWDED_MS);
  }

  private process(message: AgentMessage): void {
    try {
      this.platform.store.join(() => (this.greeted ? this.handle(message) : this.greet(message)));
    } catch (error) {
      this.afterwards(message, () => this.fail(message, error));
    }
  }

  /** Calls `run` once what a message has changed is durable: before, the host must not be told of it. */
  private afterwards(message: AgentMessage, run: () => void): void {
    this.platform.store.whenDurable(run, (error) => this.fail(message, error));
  }

  private fail({ message }: AgentMessage, error: unknown): void {
    // A host without a welcome would wait for it: the refusal makes it dial again.
    if (!this.greeted) this.turnAway(error);
    else this.host.onRefused?.(error instanceof Refusal ? 'content' : 'failed');
    const kind = message?.$case;
    if (error instanceof Refusal)
      return this.logger.warn({ kind, code: error.code }, `a host message was refused: ${error.message}`);
    this.logger.error({ err: error, kind }, `a host message failed: ${messageOf(error)}`);
  }

  private tellPaidTimes(): void {
    const now = this.platform.clock.monotonic();
    if (this.closed || now < this.paidTimesAt) return;
    const instances = paidTimesOf(this.platform, this.machineId);
    if (instances.length === 0 && this.hasNothingPaid) {
      this.paidTimesAt = now + PAID_TIMES_EVERY_MS;
      return;
    }
    if (this.send({ message: { $case: 'paidTimes', value: { instances } } })) {
      this.paidTimesAt = now + PAID_TIMES_EVERY_MS;
      this.hasNothingPaid = instances.length === 0;
    }
  }

  private cutOff(): void {
    this.logger.warn('the host says more than any honest one would: it is cut off for a minute');
    this.lost('it exceeded its message limit');
    refuse(this.host, 'flooded', status.RESOURCE_EXHAUSTED, FLOODED);
  }

  private turnAway(error: unknown): void {
    if (error instanceof Refusal) return refuse(this.host, 'content', status.FAILED_PRECONDITION, error.message);
    refuse(this.host, 'failed', status.INTERNAL, 'internal error; dial again');
  }

  private greet(first: AgentMessage): void {
    const { message } = first;
    if (message?.$case !== 'hello')
      return refuse(this.host, 'order', status.FAILED_PRECONDITION, 'the first message must be hello');
    const hello: Hello = message.value;
    if (hello.protocolMax < PROTOCOL_MIN || hello.protocolMin > PROTOCOL_MAX) {
      return refuse(
        this.host,
        'protocol',
        status.FAILED_PRECONDITION,
        `this control plane speaks protocol ${PROTOCOL_MIN} to ${PROTOCOL_MAX}, the agent ${hello.protocolMin} to ${hello.protocolMax}; upgrade the older one`,
      );
    }
    const { term } = this.platform;
    if (isSuperseded(term, hello)) {
      const details = overtakenBy(term.epoch, hello.epoch);
      this.logger.error(details);
      return refuse(this.host, 'superseded', status.FAILED_PRECONDITION, details);
    }
    const answer = handleHello(this.platform, this.machineId, hello);
    this.afterwards(first, () => this.welcome(hello, answer));
  }

  private welcome(hello: Hello, { floors, quarantined, storedGpus }: HelloAnswer): void {
    if (this.closed) return;
    this.greeted = true;
    if (hello.heedsPaidTimes) this.paidTimesAt = -Infinity;
    this.helloDeadline.cancel();
    const { connections, term } = this.platform;
    const protocol = Math.min(hello.protocolMax, PROTOCOL_MAX);
    const spread = redialSpreadMs(connections.expected);
    const takes = { takesUnseen: true, takesMeasurements: true, takesFindings: true };
    this.send({
      message: {
        $case: 'welcome',
        value: { protocol, ...term, floors, heartbeatMs: HEARTBEAT_MS, ...takes, redialSpreadMs: spread },
      },
    });
    connections.attach(this.machineId, this);
    this.platform.measurementQueries.hostConnected(this.machineId, hello.answersMeasurementQueries);
    connections.setStoredGpus(this.machineId, storedGpus);
    if (hello.unseen) connections.setDockerAvailable(this.machineId, false);
    this.logger.info({ agentVersion: hello.agentVersion, instances: hello.instances.length }, 'host connected');
    if (quarantined.length > 0)
      this.logger.warn({ instances: quarantined.slice(0, MOST_NAMED) }, `${quarantined.length} ${IN_QUARANTINE}`);
  }

  private handle(received: AgentMessage): void {
    const { message } = received;
    const { platform, machineId } = this;
    platform.connections.heard(machineId);
    switch (message?.$case) {
      case 'heartbeat':
        recordHeartbeat(platform, machineId, message.value);
        return this.afterwards(received, () => this.tellPaidTimes());
      case 'commandResult': {
        const { commandId, instanceId, outcome, code } = message.value;
        recordResult(platform, machineId, message.value);
        return this.afterwards(received, () => {
          const shown = code === '' ? {} : { code: code.slice(0, MOST_OF_A_CODE) };
          this.logger.info({ commandId, instanceId, outcome: CommandOutcome[outcome], ...shown }, 'command answered');
          // After this one, the final answer to the command follows.
          if (outcome !== CommandOutcome.COMMAND_OUTCOME_ACCEPTED)
            this.send({ message: { $case: 'resultAck', value: { commandId } } });
        });
      }
      case 'workloadReport': {
        const { instanceId, number } = message.value;
        recordReport(platform, machineId, message.value);
        return this.afterwards(received, () => {
          this.send({ message: { $case: 'reportAck', value: { instanceId, number } } });
        });
      }
      case 'progress':
        return recordProgress(platform, machineId, message.value);
      case 'measurementReport':
        return receiveMeasurements(platform, machineId, message.value);
      case 'measurementAnswer':
        return platform.measurementQueries.receive(machineId, message.value);
      case 'findingReport':
        return recordFindings(platform, machineId, message.value);
      case 'upgradeReport':
        return recordUpgradeReport(platform, machineId, message.value);
      case 'logChunk':
        return platform.logs.receive(machineId, message.value);
      default:
        this.logger.warn({ kind: message?.$case }, 'unexpected message');
    }
  }
}
