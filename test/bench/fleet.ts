import { fork, type ChildProcess } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { eventually } from '../../scripts/eventually.js';
import type { Inventory } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { FleetKeys, FleetTarget } from './light-host.js';

const PROGRAM = fileURLToPath(new URL('./fleet-main.js', import.meta.url));
const PATIENCE_MS = 280_000;

export interface FleetHost {
  id: string;
  certificate: string;
  inventory: Inventory;
  /** What runs there. */
  run?: { instanceId: string; sequence: number };
}

export interface FleetFile {
  keys: FleetKeys;
  hosts: FleetHost[];
}

export interface FleetOrder {
  target: FleetTarget;
}

export interface FleetReport {
  /** Of the newest control plane that any host has met. */
  epoch: number;
  /** The hosts that it has welcomed. */
  connected: number;
  /** The heartbeats sent so far. */
  beats: number;
  /** In ms since 1970 UTC. */
  at: number;
  /** Why streams ended, with counts. */
  reasons: Record<string, number>;
}

/** Many light hosts in one process. */
export class Fleet {
  private report: FleetReport = { epoch: 0, connected: 0, beats: 0, at: 0, reasons: {} };

  private constructor(
    private readonly child: ChildProcess,
    private readonly hosts: number,
    private readonly path: string,
  ) {
    child.on('message', (report: FleetReport) => (this.report = report));
  }

  /** Starts the hosts of `file`, which is kept in `path` while they live, and waits until all are connected. */
  static async connect(path: string, file: FleetFile, address: string): Promise<Fleet> {
    writeFileSync(path, JSON.stringify(file), { mode: 0o600 });
    const fleet = new Fleet(fork(PROGRAM, [path]), file.hosts.length, path);
    const [host = '', port = ''] = address.split(':');
    fleet.child.send({ target: { host, port: Number(port) } } satisfies FleetOrder);
    await fleet.allBack(0);
    return fleet;
  }

  get latest(): FleetReport {
    return this.report;
  }

  /** Waits until all hosts are connected to a control plane of a later epoch. Returns when that was, in ms since 1970 UTC. */
  async allBack(epoch: number): Promise<number> {
    return eventually(
      `${this.hosts} hosts`,
      () => this.report.epoch > epoch && this.report.connected === this.hosts && this.report.at,
      PATIENCE_MS,
    );
  }

  close(): void {
    this.child.kill();
    rmSync(this.path, { force: true });
  }
}
