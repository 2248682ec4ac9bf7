import BetterSqlite3 from 'better-sqlite3';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect, type Gpurent } from '../../client/api/index.js';
import { ApiClient } from '../harness/api-client.js';
import { Daemon } from '../../scripts/daemon.js';
import { createControlPlane, type Addresses, type ControlPlane } from '../../control-plane/app.js';
import { parseConfig } from '../../control-plane/config.js';
import { silentLogger } from '../../shared/logger.js';
import { cpuMsOf } from './process-costs.js';

const PROGRAM = fileURLToPath(new URL('../../bundle/control-plane.js', import.meta.url));
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
    made.operatorToken = (await made.connect().post('/v1/auth/sign-in', { body: OPERATOR })).token;
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

  /** The client that everybody uses, for what is not measured. */
  connect(token?: string): Gpurent {
    return connect({ url: this.url, ...(token !== undefined && { token }) });
  }

  /** For requests that are measured: it sends exactly what it is told, once, and adds no Idempotency-Key. */
  measured(token?: string): ApiClient {
    return new ApiClient(this.url, token);
  }

  get operator(): Gpurent {
    return this.connect(this.operatorToken);
  }

  get measuredOperator(): ApiClient {
    return this.measured(this.operatorToken);
  }

  /** Adds a user with an organization, and with credit in micro-dollars. */
  async signUp(email: string, creditMicro = 0): Promise<{ token: string; organizationId: string }> {
    const body = { email, password: 'a renter password', name: 'Renter' };
    const account = await this.connect().post('/v1/auth/sign-up', { body });
    if (!('token' in account)) throw new Error('the control plane mails links');
    const organizationId = account.organization?.id ?? '';
    if (creditMicro > 0)
      await this.operator.post('/v1/operator/organizations/{id}/credits', {
        params: { path: { id: organizationId } },
        body: { amount_micro: creditMicro, reason: 'bench' },
      });
    return { token: account.token, organizationId };
  }

  /** Adds a template. Returns its id. */
  async template(): Promise<string> {
    return (await this.operator.post('/v1/operator/templates', { body: { name: 'Bench', image: 'bench:1' } })).id;
  }

  /** Adds an offer of one GPU of a machine. Returns its id. */
  async offer(machineId: string, priceMicro: number): Promise<string> {
    const prices = { price_per_hour_micro: priceMicro, storage_price_per_gb_hour_micro: 1 };
    return (
      await this.operator.post('/v1/operator/offers', { body: { machine_id: machineId, num_gpus: 1, ...prices } })
    ).id;
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
    try {
      await work(controlPlane);
    } finally {
      await controlPlane.stop();
    }
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
