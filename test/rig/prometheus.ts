import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { eventually } from '../../scripts/eventually.js';

export interface FiringAlert {
  labels: Record<string, string>;
  annotations: Record<string, string>;
}

/** Where Debian's programs are, unpacked: scripts/test says so. */
function programs(): string {
  const folder = process.env['GPURENT_TEST_PROMETHEUS'];
  if (folder === undefined) throw new Error('GPURENT_TEST_PROMETHEUS names no folder: run ./scripts/test --nightly');
  return folder;
}

/** Runs promtool. Throws, with what it says, when it finds something wrong. */
export function promtool(...args: string[]): string {
  return execFileSync(join(programs(), 'promtool'), args, { encoding: 'utf8' });
}

/** Finds a port of this machine's loopback on which nobody listens. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** A Prometheus of its own, on loopback, that talks to nobody but what it scrapes. */
export class Prometheus {
  private constructor(
    private readonly program: ChildProcess,
    private readonly url: string,
  ) {}

  /** Starts one on a configuration, in `folder`. Rejects, with what it says, when it does not become ready. */
  static async start(folder: string, config: string): Promise<Prometheus> {
    const file = join(folder, 'prometheus.yml');
    writeFileSync(file, config);
    const address = `127.0.0.1:${await freePort()}`;
    const args = [`--config.file=${file}`, `--storage.tsdb.path=${folder}/data`, `--web.listen-address=${address}`];
    const stdio: ['ignore', 'ignore', 'pipe'] = ['ignore', 'ignore', 'pipe'];
    const program = spawn(join(programs(), 'prometheus'), [...args, '--log.level=warn'], { stdio, cwd: folder });
    let said = '';
    program.stderr.on('data', (chunk) => (said += String(chunk)));
    const prometheus = new Prometheus(program, `http://${address}`);
    await eventually('Prometheus to be ready', async () => {
      if (program.exitCode !== null) throw new Error(`it has ended: ${said}`);
      return prometheus.isReady();
    });
    return prometheus;
  }

  async firing(): Promise<FiringAlert[]> {
    const { alerts } = await this.get<{ alerts: (FiringAlert & { state: string })[] }>('/api/v1/alerts');
    return alerts.filter(({ state }) => state === 'firing');
  }

  /** How many series an expression finds at this moment. */
  async count(expression: string): Promise<number> {
    const path = `/api/v1/query?query=${encodeURIComponent(expression)}`;
    return (await this.get<{ result: unknown[] }>(path)).result.length;
  }

  /** The time of its last evaluation of each group of rules, and what went wrong in one. */
  async evaluations(): Promise<{ at: number; errors: string[] }[]> {
    const path = '/api/v1/rules';
    const { groups } = await this.get<{ groups: { lastEvaluation: string; rules: { lastError?: string }[] }[] }>(path);
    return groups.map(({ lastEvaluation, rules }) => ({
      at: Date.parse(lastEvaluation),
      errors: rules.flatMap(({ lastError }) => lastError || []),
    }));
  }

  async stop(): Promise<void> {
    if (this.program.exitCode !== null) return;
    const ended = once(this.program, 'exit');
    this.program.kill('SIGKILL');
    await ended;
  }

  private async get<T>(path: string): Promise<T> {
    const answer = (await (await fetch(this.url + path)).json()) as { status: string; data: T };
    if (answer.status !== 'success') throw new Error(`${path}: ${JSON.stringify(answer)}`);
    return answer.data;
  }

  private isReady(): Promise<boolean> {
    return fetch(`${this.url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  }
}
