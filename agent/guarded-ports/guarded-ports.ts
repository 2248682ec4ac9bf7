import { sleep, type Clock } from '../../shared/clock.js';
import { messageOf } from '../../shared/coded-error.js';
import type { Logger } from '../../shared/logger.js';
import { PacedLog } from '../../shared/paced-log.js';
import type { Observer, Links } from '../observation/observer.js';
import type { PublishedPort } from '../domain/ports.js';
import type { GuardedPort } from '../proxy/state.js';
import type { Workload } from '../runtime/workload.js';

type RunningWorkload = Extract<Workload, { state: 'running' }>;

/** The part of the access proxy that is used here. */
export interface PortGuard {
  readonly scheme: 'http' | 'https';
  /** Guards exactly these ports of an instance from now on. Rejects when the proxy does not confirm it. */
  set(instanceId: string, ports: readonly GuardedPort[]): Promise<void>;
  /** Tells the proxy that every workload of this host has been noted once. */
  complete(): void;
}

export interface EndpointParts {
  portGuard: PortGuard;
  observer: Observer;
  clock: Clock;
  logger: Logger;
  /** Returns the address at which visitors reach an instance. */
  addressOf: (instanceId: string) => Promise<string>;
  /** Tells whether our SSH server answers at a port of this host. */
  sshAnswers: (port: number) => Promise<boolean>;
  /** Returns the SSH host key at a port of this host, empty if there is none; null: this host cannot ask. */
  hostKeyAt: ((port: number) => Promise<string>) | null;
  /** Tells whether the port answers HTTP. */
  answers: (host: string, port: number) => Promise<boolean>;
}

const PROBE_EVERY_MS = 2_000;
/** How often an SSH server that answers is asked for its host key in a run. */
const HOST_KEY_TRIES = 5;
const LINKS = { jupyter: 'jupyterUrl', open: 'openUrl' } as const;
const PATHS = { jupyter: 'lab', open: '' } as const;

/** Opens the guarded ports of running workloads, and finds out when SSH, JupyterLab and apps answer. */
export class GuardedPorts {
  /** Called once a link of an instance has appeared, so that its state is reported to the control plane. */
  onLink: (instanceId: string) => void = () => {};
  private readonly known = new Map<string, { startedAt: number }>();
  private readonly stopping = new AbortController();

  private readonly paced: PacedLog;

  constructor(private readonly parts: EndpointParts) {
    this.paced = new PacedLog(parts.clock, parts.logger);
  }

  /** Takes the present state of a workload, and guards and probes its ports accordingly. */
  async note(instanceId: string, workload: Workload): Promise<void> {
    const before = this.known.get(instanceId);
    if (workload.state !== 'running') {
      this.known.delete(instanceId);
      return this.guard(instanceId, []);
    }
    if (this.stopping.signal.aborted) return;
    const { startedAt } = workload;
    this.known.set(instanceId, { startedAt });
    await this.guard(instanceId, guardedPorts(workload));
    if (before?.startedAt !== startedAt) void this.watch(workload);
  }

  /**
   * Passes a replaced access token to the proxy, which ends the sessions of the old one. Rejects when the proxy does not
   * confirm it.
   */
  async readmit(workload: Workload): Promise<void> {
    if (workload.state !== 'running') return;
    await this.parts.portGuard.set(workload.instanceId, guardedPorts(workload));
  }

  /** Tells the proxy that every workload of this host has been noted once. */
  noteAll(): void {
    this.parts.portGuard.complete();
  }

  stop(): void {
    this.stopping.abort();
  }

  /** Sets the guarded ports of an instance. After a failure, the next `note` of the workload tries again. */
  private async guard(instanceId: string, ports: GuardedPort[]): Promise<void> {
    await this.parts.portGuard.set(instanceId, ports).catch((error: unknown) => {
      this.paced.write('error', `cannot set guarded ports in the access proxy: ${messageOf(error)}`, { instanceId });
    });
  }

  /** Probes until SSH and every link of the run have answered, and the SSH host key is known or was asked for often enough. */
  private async watch(workload: RunningWorkload): Promise<void> {
    const { clock, observer, answers, hostKeyAt } = this.parts;
    let keyTries = workload.sshPort === null || hostKeyAt === null ? 0 : HOST_KEY_TRIES;
    const waiting = new Set(workload.ports.filter(({ link }) => link !== null));
    const isUnreached = () => workload.sshPort !== null && !observer.wasReached(workload);
    const isWaiting = () => waiting.size > 0 || isUnreached() || keyTries > 0;
    while (isWaiting() && this.isCurrent(workload)) {
      if (isUnreached()) await this.tryToReach(workload);
      if (keyTries > 0 && !isUnreached()) keyTries = (await this.learnHostKey(workload)) ? 0 : keyTries - 1;
      for (const port of waiting) {
        if (workload.address === '' || !(await answers(workload.address, port.port)) || !this.isCurrent(workload))
          continue;
        waiting.delete(port);
        observer.noteLinks(workload, await this.linkTo(workload, port));
        this.onLink(workload.instanceId);
      }
      if (isWaiting()) await sleep(clock, PROBE_EVERY_MS, this.stopping.signal).catch(() => undefined);
    }
  }

  private async tryToReach(workload: RunningWorkload): Promise<void> {
    if (workload.sshPort === null || !(await this.parts.sshAnswers(workload.sshPort))) return;
    if (!this.isCurrent(workload)) return;
    this.parts.observer.noteReached(workload);
    this.onLink(workload.instanceId);
  }

  /** Returns whether the host key of the run is known then. */
  private async learnHostKey(workload: RunningWorkload): Promise<boolean> {
    const { observer, hostKeyAt } = this.parts;
    const key = await hostKeyAt?.(workload.sshPort ?? 0).catch((error: unknown) => {
      const what = 'cannot ask SSH servers for their host keys, so renters cannot verify their first connection';
      this.paced.write('warn', `${what}: ${messageOf(error)}; run "gpurent-agent doctor"`);
    });
    if (!key || !this.isCurrent(workload)) return false;
    observer.noteHostKey(workload, key);
    this.onLink(workload.instanceId);
    return true;
  }

  private isCurrent({ instanceId, startedAt }: RunningWorkload): boolean {
    return !this.stopping.signal.aborted && this.known.get(instanceId)?.startedAt === startedAt;
  }

  private async linkTo({ instanceId }: RunningWorkload, { link, hostPort }: PublishedPort): Promise<Partial<Links>> {
    if (link === null) return {};
    const address = await this.parts.addressOf(instanceId);
    const host = address.includes(':') ? `[${address}]` : address;
    return { [LINKS[link]]: `${this.parts.portGuard.scheme}://${host}:${hostPort}/${PATHS[link]}` };
  }
}

function guardedPorts({ ports, tokenHash, address }: RunningWorkload): GuardedPort[] {
  // A workload on no network has no address; an empty target must not be taken for the host.
  if (address === '') return [];
  return ports
    .filter(({ guarded }) => guarded)
    .map(({ hostPort, port }) => ({ hostPort, tokenHash, target: { host: address, port } }));
}
