import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { DataRoot } from '../../agent/domain/data-root.js';

/** A Docker Engine that answers what it is and which containers it shows, and removes them; nothing runs on it. */
export class DockerDouble {
  root: DataRoot = { path: '/var/lib/docker', storageDriver: 'overlay2', isRemapped: false, engineId: 'A' };
  runtimes: Record<string, unknown> = { runc: {} };
  /** Host ids of the instances that it shows, by instance. */
  shown = new Map<string, string>();
  readonly running = new Set<string>();
  /** By instance. */
  readonly gpuUuids = new Map<string, string[]>();
  /** Is called before each list of containers is answered. */
  beforeList: () => void = () => {};
  /** Whether it takes requests and answers none, as one that hangs. */
  isSilent = false;
  /** Requests that it has not answered since. */
  unanswered = 0;
  /** How often it has described itself. */
  described = 0;
  /** Who follows its events. */
  followers = 0;
  private readonly server: Server;

  private constructor(readonly socket: string) {
    this.server = createServer((request, response) => this.answer(request, response));
  }

  static async listen(socket: string): Promise<DockerDouble> {
    const double = new DockerDouble(socket);
    await new Promise<void>((resolve) => double.server.listen({ path: socket }, resolve));
    return double;
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private answer({ url = '', method }: IncomingMessage, response: ServerResponse): void {
    const [, , instanceId = ''] = /^\/(v[\d.]+\/)?containers\/gpurent-([^/?]+)/.exec(url) ?? [];
    const reply = (status: number, body: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    if (this.isSilent) {
      this.unanswered++;
      return;
    }
    if (url.includes('/events')) {
      this.followers++;
      response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
    } else if (url.includes('/_ping')) response.end('OK');
    else if (url.includes('/info')) reply(200, this.info());
    else if (url.includes('/containers/json')) {
      this.beforeList();
      reply(200, this.list(new URL(url, 'http://docker').searchParams.get('filters') ?? '{}'));
    } else if (!this.shown.has(instanceId)) reply(404, { message: 'there is none' });
    else if (method === 'DELETE') {
      this.shown.delete(instanceId);
      response.writeHead(204).end();
    } else reply(200, this.inspect(instanceId));
  }

  private info() {
    this.described++;
    const { path, storageDriver, isRemapped, engineId } = this.root;
    const SecurityOptions = ['name=seccomp,profile=builtin', ...(isRemapped ? ['name=userns'] : [])];
    return { DockerRootDir: path, Driver: storageDriver, ID: engineId, SecurityOptions, Runtimes: this.runtimes };
  }

  private list(filters: string) {
    const { label = [] } = JSON.parse(filters) as { label?: string[] };
    return [...this.shown.keys()]
      .map((instanceId): { Labels: Record<string, string>; State: string; Names: string[] } => ({
        Names: [`/gpurent-${instanceId}`],
        State: this.running.has(instanceId) ? 'running' : 'exited',
        Labels: { ...this.labels(instanceId), 'gpurent.gpus': this.gpuUuids.get(instanceId)?.join(',') ?? '' },
      }))
      .filter(({ Labels }) =>
        label.every((wanted) => {
          const [key = '', value] = wanted.split('=');
          return key in Labels && (value === undefined || Labels[key] === value);
        }),
      );
  }

  private inspect(instanceId: string) {
    const State = { StartedAt: '0001-01-01T00:00:00Z' };
    const HostConfig = { NetworkMode: `gpurent-${instanceId}` };
    return { Config: { Labels: this.labels(instanceId) }, HostConfig, State, NetworkSettings: { Networks: {} } };
  }

  private labels(instanceId: string): Record<string, string> {
    return { 'gpurent.host': this.shown.get(instanceId) ?? '', 'gpurent.instance': instanceId };
  }
}
