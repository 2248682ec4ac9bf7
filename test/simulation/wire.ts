import { EventEmitter } from 'node:events';
import type { Dial, Wire } from '../../agent/link/dial.js';
import type { HostStream } from '../../control-plane/grpc/host-session.js';
import { AgentMessage, ControlMessage } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { Faults } from './faults.js';
import type { Random } from './random.js';
import { ProcessHandle, type Timeline } from './timeline.js';

export interface WireFaults {
  /** Probabilities. */
  loss: number;
  duplication: number;
  reordering: number;
}

/** Where streams end up on the other side. */
export type Accept = (stream: HostStream, credential: string) => void;

/**
 * The network between one host and the control plane. A stream dies with either of its programs; what is on its way while a
 * direction is cut is lost without a word.
 */
export class Network {
  /** Whether new streams end up at another control plane than they should. */
  misled = false;
  toControlPlane = true;
  toHost = true;
  messages = 0;
  lost = 0;
  duplicated = 0;

  constructor(
    private readonly timeline: Timeline,
    private readonly random: Random,
    private readonly fate: Faults,
    readonly faults: WireFaults,
    private readonly controlPlane: () => { life: ProcessHandle; accept: Accept } | undefined,
    /** Hears what a control plane sends, at the moment at which it does. */
    private readonly overhear: (message: ControlMessage, from: ProcessHandle) => void,
  ) {}

  dialFor(host: ProcessHandle, credential: string): Dial {
    return () => {
      const agentSide = new EventEmitter() as EventEmitter & Pick<Wire, 'write' | 'cancel'>;
      const serverSide = new EventEmitter() as EventEmitter & Pick<HostStream, 'write' | 'end'>;
      const connection = new ProcessHandle();
      const peer = this.controlPlane();
      const fail = (details: string) => {
        if (!connection.alive) return;
        connection.alive = false;
        this.later(host, () => agentSide.emit('error', Object.assign(new Error(details), { details })));
        if (peer) this.later(peer.life, () => serverSide.emit('close'));
      };
      agentSide.write = (message: AgentMessage) => {
        const copy = AgentMessage.decode(AgentMessage.encode(message).finish());
        if (peer)
          this.send(
            connection,
            peer.life,
            () => this.toControlPlane,
            () => serverSide.emit('data', copy),
          );
        return true;
      };
      agentSide.cancel = () => {
        if (!connection.alive) return;
        connection.alive = false;
        if (peer) this.later(peer.life, () => serverSide.emit('close'));
      };
      serverSide.write = ((message: ControlMessage) => {
        const copy = ControlMessage.decode(ControlMessage.encode(message).finish());
        if (peer) this.overhear(copy, peer.life);
        this.send(
          connection,
          host,
          () => this.toHost,
          () => agentSide.emit('data', copy),
        );
        return true;
      }) as HostStream['write'];
      serverSide.end = (() => fail('ended by the control plane')) as unknown as HostStream['end'];
      serverSide.on('error', ({ details }: { details: string }) => fail(details));
      if (!peer?.life.alive || !this.toControlPlane) this.later(host, () => fail('unreachable'));
      else peer.accept(serverSide as unknown as HostStream, credential);
      this.open.push({ host, peer: peer?.life, connection, fail });
      return agentSide as unknown as Wire;
    };
  }

  /** Every stream breaks. */
  drop(): void {
    for (const stream of this.open.splice(0)) stream.fail('connection lost');
  }

  /** Streams of programs that are gone break; so do, sometimes, those that the network has cut. */
  reap(breakCut: boolean): void {
    for (const stream of Array.from(this.open)) {
      const dead = !stream.host.alive || !stream.peer?.alive;
      const cut = !this.toControlPlane || !this.toHost;
      if (dead || (cut && breakCut)) stream.fail('connection lost');
      if (!stream.connection.alive) this.open.splice(this.open.indexOf(stream), 1);
    }
  }

  private readonly open: {
    host: ProcessHandle;
    peer: ProcessHandle | undefined;
    connection: ProcessHandle;
    fail: (details: string) => void;
  }[] = [];

  private send(connection: ProcessHandle, to: ProcessHandle, passes: () => boolean, deliver: () => void): void {
    this.messages += 1;
    const arrive = () => {
      if (connection.alive && passes()) deliver();
    };
    if (this.fate.strikes('a message is lost', this.faults.loss)) {
      this.lost += 1;
      return;
    }
    this.later(to, arrive, this.random.chance(this.faults.reordering) ? this.random.between(1, 3_000) : 1);
    if (!this.fate.strikes('a message comes twice', this.faults.duplication)) return;
    this.duplicated += 1;
    this.later(to, arrive, this.random.between(1, 5_000));
  }

  private later(owner: ProcessHandle, run: () => void, delayMs = 1): void {
    this.timeline.schedule(owner, delayMs, run);
  }
}
