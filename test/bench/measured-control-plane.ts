import BetterSqlite3 from 'better-sqlite3';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ApiClient } from '../../scripts/client.js';
import { Daemon } from '../../scripts/daemon.js';
import { createControlPlane, type Addresses, type ControlPlane } from '../../control-plane/app.js';
import { parseConfig } from '../../control-plane/config.js';
import { silentLogger } from '../../shared/logger.js';
import { cpuMsOf } from './process-costs.js';

const PROGRAM = fileURLToPath(new URL('../../control-plane/main.js', import.meta.url));
const OPERATOR = { email: 'operator@example.com', password: 'operator password' };
const UNLIMITED = '999999999';

/** A control plane in a process of its own, whose processor time can be read. */
export class MeasuredControlPlane {
  private readonly folder = mkdtempSync(join(tmpdir(), 'gpurent-bench-'));
  private daemon: Daemon | undefined;
  private addresses: Addresses = { http: '127.0.0.1:0', grpc: '127.0.0.1:0' };
  private operatorToken = '';

  private constructor(private readonly settings: Readonly<Record<string, string>>) {}

  static async start(settings: Readonly<Record<string, string>> = {}): Promise<MeasuredControlPlane> {
    const made = new MeasuredControlPlane(settings);
    const options = { env: { ...process.env, ...made.env }, input: OPERATOR.password } as const;
    execFileSync(process.execPath, [PROGRAM, 'create-operator', '--email', OPERATOR.email], {
      ...options,
      stdio: ['pipe', 'ignore', 'inherit'],
    });
    await made.run();
    made.operatorToken = (await made.api.post<{ token: string }>('/v1/auth/sign-in', OPERATOR)).token;
    return made;
  }

  get url(): string {
    return `http://${this.addresses.http}`;
  }

  get grpcAddress(): string {
    return this.addresses.grpc;
  }

  get pid(): number {
    return this.daemon?.pid ?? 0;
  }

  get api(): ApiClient {
    return new ApiClient(this.url);
  }

  get operator(): ApiClient {
    return this.api.as(this.operatorToken);
  }

  /** Changes the database while no daemon runs, and starts one again at the same addresses. */
  async rewrite(change: (database: BetterSqlite3.Database) => void): Promise<void> {
    await this.daemon?.stop();
    const database = new BetterSqlite3(join(this.folder, 'gpurent.db'));
    database.pragma('synchronous = OFF');
    database.transaction(() => change(database))();
    database.close();
    await this.run();
  }

  /** Works on the database with the code of the control plane while no daemon runs, and starts one again. */
  async prepare(work: (controlPlane: ControlPlane) => Promise<void>): Promise<void> {
    await this.daemon?.stop();
    const controlPlane = createControlPlane(parseConfig(this.env), silentLogger);
    await work(controlPlane).finally(() => controlPlane.stop());
    await this.run();
  }

  /** Ends the daemon as a crash would, and starts it again. */
  async killAndStart(): Promise<void> {
    await this.daemon?.stop('SIGKILL');
    await this.run();
  }

  /** Returns the processor time of all threads since the start, in milliseconds. */
  cpuMs(): number {
    return cpuMsOf(this.pid);
  }

  async stop(): Promise<void> {
    await this.daemon?.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private get env(): Record<string, string> {
    const limits = ['ADDRESS', 'CREDENTIAL', 'ATTEMPTS_ADDRESS', 'ATTEMPTS_ACCOUNT'];
    return {
      GPURENT_DATABASE: join(this.folder, 'gpurent.db'),
      GPURENT_HTTP_ADDRESS: this.addresses.http,
      GPURENT_GRPC_ADDRESS: this.addresses.grpc,
      ...Object.fromEntries(limits.map((name) => [`GPURENT_RATE_LIMIT_${name}`, UNLIMITED])),
      ...this.settings,
    };
  }

  private async run(): Promise<void> {
    const log = join(this.folder, 'control-plane.log');
    this.daemon = Daemon.start('the control plane', PROGRAM, ['serve'], this.env, log);
    this.addresses = await this.daemon.firstLine();
  }
}
