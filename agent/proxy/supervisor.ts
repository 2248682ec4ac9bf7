import { createServer, type Server, type Socket } from 'node:net';
import { messageOf } from '../../shared/coded-error.js';
import { readJsonLines, writeJsonLine } from './json-lines.js';
import type { GuardedPort, PortFailure, ProxyReply, ProxyState } from './state.js';
import { WorkerProcess, type WorkerSettings } from './worker-process.js';

/** Far more than the guarded ports of one host need. */
const STATE_BYTES = 8 * 1024 * 1024;

interface Listener {
  server: Server;
  instanceId: string;
}

/**
 * Listens at the guarded ports of this host and passes each connection to the worker of its instance. It reads no byte
 * from visitors. Only the workers do, one process per instance, so that a crash in one of them affects no other
 * instance.
 */
export class Supervisor {
  private readonly listeners = new Map<number, Listener>();
  private readonly workers = new Map<string, WorkerProcess>();
  private agent: Socket | undefined;
  private applying: Promise<unknown> = Promise.resolve();

  constructor(private readonly settings: WorkerSettings) {}

  /**
   * Serves the agent on this connection, and ends an earlier connection. The state from the earlier one stays until the
   * agent sends another.
   */
  serve(agent: Socket): void {
    this.agent?.destroy();
    this.agent = agent;
    agent.on('error', (error) =>
      this.settings.logger.warn(`the connection to the agent has failed: ${messageOf(error)}`),
    );
    readJsonLines(agent, STATE_BYTES, (value) => {
      const state = value as ProxyState;
      this.applying = this.applying.then(async () => {
        if (this.agent !== agent) return;
        const failures = await this.apply(state);
        writeJsonLine(agent, { revision: state.revision, failures } satisfies ProxyReply);
      });
      // The agent reconnects and sends its whole state.
      this.applying = this.applying.catch((error: unknown) => agent.destroy(error as Error));
    });
  }

  /** Closes every port and ends every worker. */
  stop(): void {
    this.agent?.destroy();
    for (const hostPort of Array.from(this.listeners.keys())) this.close(hostPort);
    for (const worker of this.workers.values()) worker.end();
    this.workers.clear();
  }

  private async apply({ isComplete, bindAddress, identity, instances }: ProxyState): Promise<PortFailure[]> {
    const owners = new Map(
      instances.flatMap(({ instanceId, ports }) => ports.map(({ hostPort }) => [hostPort, instanceId])),
    );
    for (const [hostPort, { instanceId }] of this.listeners) {
      const owner = owners.get(hostPort);
      if (owner === undefined ? isComplete : owner !== instanceId) this.close(hostPort);
    }
    const named = new Set(instances.map(({ instanceId }) => instanceId));
    for (const [instanceId, worker] of this.workers) {
      if (!isComplete || named.has(instanceId)) continue;
      worker.end();
      this.workers.delete(instanceId);
    }
    const failures: PortFailure[] = [];
    for (const { instanceId, ports } of instances) {
      this.configure(instanceId, ports, identity);
      for (const { hostPort } of ports) {
        await this.listen(bindAddress, hostPort, instanceId).catch((error: unknown) =>
          failures.push({ hostPort, reason: messageOf(error) }),
        );
      }
    }
    return failures;
  }

  private configure(instanceId: string, ports: GuardedPort[], identity: ProxyState['identity']): void {
    const worker = this.workers.get(instanceId);
    if (worker) worker.configure(ports, identity);
    else this.workers.set(instanceId, new WorkerProcess(instanceId, this.settings, ports, identity));
  }

  private async listen(host: string, hostPort: number, instanceId: string): Promise<void> {
    if (this.listeners.has(hostPort)) return;
    const server = createServer({ pauseOnConnect: true, noDelay: true }, (socket) => {
      const worker = this.workers.get(instanceId);
      if (worker) worker.take(hostPort, socket);
      else socket.destroy();
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port: hostPort }, resolve);
    });
    // Once it listens, an error concerns only a single connection.
    server.on('error', () => undefined);
    this.listeners.set(hostPort, { server, instanceId });
  }

  private close(hostPort: number): void {
    this.listeners.get(hostPort)?.server.close();
    this.listeners.delete(hostPort);
  }
}
