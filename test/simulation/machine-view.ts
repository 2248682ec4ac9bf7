import type { InstanceAction, InstanceStatus } from '../../control-plane/domain/instances/instance-state.js';

/** What is looked at at the moment at which it happens. */
export type MachineView =
  | 'sent means committed before'
  | 'a command is carried out at most once'
  | 'applied sequences never fall'
  | 'allowed actions are what the API accepts'
  | 'what is accepted is covered';

const DISK_SILENCE_MS = 15 * 60_000;

interface Begun {
  commandId: string;
  instanceId: string;
  sequence: number;
}

/** Time, in simulated milliseconds, in which no disk of a machine is metered: its host is silent for too long. */
export interface Silence {
  machineId: string;
  from: number;
  to: number;
}

/** API rule 26, written down apart from the server's own table. */
const ACCEPTED: Readonly<Record<InstanceStatus, readonly InstanceAction[]>> = {
  creating: ['destroy'],
  starting: ['destroy'],
  running: ['stop', 'destroy'],
  stopping: ['destroy'],
  stopped: ['start', 'destroy'],
  destroying: ['destroy'],
  error: ['destroy'],
  destroyed: [],
};

/** Sees everything that happens in a world, and remembers what no store may forget, whatever copies of it are restored. */
export class Witness {
  readonly wrongs = new Map<MachineView, string>();
  /** Instances whose workload has been up. */
  readonly started = new Set<string>();
  /** Instances that their renters, or an operator, have given up with their disks. */
  readonly givenUp = new Set<string>();
  /** Instances whose workload has ended by itself. */
  readonly ended = new Set<string>();
  /** Instances whose container somebody has removed behind the agent's back. */
  readonly vanished = new Set<string>();
  /** Machines that have not spoken to a restored store yet, or speak to another one. */
  readonly unheard = new Set<string>();
  /** Since when, in simulated time, an instance has been seen `stopping`. */
  readonly stoppingSince = new Map<string, number>();
  /** The same of `running`, of `stopped` and `error`, and of balances at or below zero. */
  readonly runningSince = new Map<string, number>();
  readonly downSince = new Map<string, number>();
  readonly lowSince = new Map<string, number>();
  /** When an organization was last seen with a balance. */
  readonly paidAt = new Map<string, number>();
  /** When the control plane last had a message of a machine, and the silences before that were longer than disks are charged for. */
  readonly heardAt = new Map<string, number>();
  readonly silences: Silence[] = [];
  private readonly runs = new Map<string, { ranMs: number; upSince: number | undefined }>();
  private readonly finished = new Set<string>();
  private readonly current = new Map<string, string>();
  /** The command that has started an instance. */
  private readonly startedBy = new Map<string, string>();
  private readonly highest = new Map<string, number>();
  private readonly hostOf = new Map<string, string>();
  /** Instances whose host has lost its journal. */
  readonly unsure = new Set<string>();
  /** Whether an older copy was ever restored. */
  restored = false;

  /** Notes an organization's balance at `now`, in simulated time. */
  seeBalance(organizationId: string, balanceMicro: number, now: number): void {
    noteSince(this.lowSince, organizationId, balanceMicro <= 0, now);
    if (balanceMicro > 0) this.paidAt.set(organizationId, now);
  }

  /** A message of a host comes in at a control plane that is up since `upSince`. */
  hears(machineId: string, now: number, upSince: number): void {
    const silence = this.silenceOf(machineId, now, upSince);
    if (silence) this.silences.push(silence);
    this.heardAt.set(machineId, now);
  }

  /** The time up to `now` in which a host was silent for longer than its disks are charged; undefined: there is none. */
  silenceOf(machineId: string, now: number, upSince: number): Silence | undefined {
    const heardAt = this.heardAt.get(machineId);
    if (heardAt === undefined) return undefined;
    const from = Math.max(heardAt, upSince) + DISK_SILENCE_MS;
    return from < now ? { machineId, from, to: now } : undefined;
  }

  wrong(sight: MachineView, what: string): void {
    if (!this.wrongs.has(sight)) this.wrongs.set(sight, what);
  }

  /** A host's journal takes a command up. */
  begins(host: string, { commandId, instanceId, sequence }: Begun): void {
    this.hostOf.set(instanceId, host);
    if (this.finished.has(`${commandId} ${sequence}`)) {
      this.wrong('a command is carried out at most once', `${commandId} of ${instanceId}`);
    }
    const highest = this.highest.get(instanceId) ?? 0;
    if (sequence < highest) {
      this.wrong('applied sequences never fall', `${instanceId} went from ${highest} to ${sequence}`);
    }
    this.highest.set(instanceId, Math.max(highest, sequence));
    this.current.set(instanceId, commandId);
  }

  finishes({ commandId, instanceId, sequence }: Begun): void {
    this.finished.add(`${commandId} ${sequence}`);
    if (this.current.get(instanceId) === commandId) this.current.delete(instanceId);
  }

  /** A container has come up, under the command that its host has in hand. */
  comesUp(instanceId: string): void {
    const commandId = this.current.get(instanceId);
    if (commandId === undefined) return;
    const isSecond = this.startedBy.get(instanceId) === commandId;
    if (isSecond) this.wrong('a command is carried out at most once', `${commandId} has started ${instanceId} twice`);
    this.startedBy.set(instanceId, commandId);
  }

  /** A container's process begins, or ends, at `now`. */
  processes(instanceId: string, isUp: boolean, now: number): void {
    const upSince = isUp ? now : undefined;
    this.runs.set(instanceId, { ranMs: this.ranFor(instanceId, now), upSince });
  }

  /** For how long its workload has really run, in milliseconds. */
  ranFor(instanceId: string, now: number): number {
    const { ranMs, upSince = now } = this.runs.get(instanceId) ?? { ranMs: 0 };
    return ranMs + now - upSince;
  }

  /** It went down by a command, with its host or with Docker: the same command may bring it up again. */
  interrupted(instanceId: string): void {
    this.startedBy.delete(instanceId);
  }

  /** What its host knew of commands is gone. */
  journalLost(host: string): void {
    for (const [id, its] of this.hostOf) {
      if (its !== host) continue;
      this.interrupted(id);
      this.unsure.add(id);
    }
    this.finished.clear();
    if (this.restored) this.forgetUnsure();
  }

  /** Where the journal was lost and the store is an older copy, nobody knows how far an instance was. */
  private forgetUnsure(): void {
    for (const id of this.unsure) this.highest.delete(id);
    this.startedBy.clear();
  }

  storeRestored(machineIds: Iterable<string>): void {
    this.restored = true;
    // An older copy does not know of them.
    this.silences.length = 0;
    this.forgetUnsure();
    for (const id of machineIds) this.unheard.add(id);
  }

  /** What the API answered to an action on an instance in `status`. */
  acted(status: InstanceStatus, action: InstanceAction, accepted: boolean): void {
    if (ACCEPTED[status].includes(action) === accepted) return;
    const sight = 'allowed actions are what the API accepts';
    this.wrong(sight, `${action} of what is ${status} was ${accepted ? 'accepted' : 'refused'}`);
  }

  /** What the API said is possible. */
  offered(status: InstanceStatus, actions: readonly string[]): void {
    if ([...actions].sort().join() === [...ACCEPTED[status]].sort().join()) return;
    const sight = 'allowed actions are what the API accepts';
    this.wrong(sight, `what is ${status} says [${actions.join()}]`);
  }
}

/** Notes since when something holds. */
export function noteSince(since: Map<string, number>, id: string, holds: boolean, now: number): void {
  if (!holds) since.delete(id);
  else if (!since.has(id)) since.set(id, now);
}
