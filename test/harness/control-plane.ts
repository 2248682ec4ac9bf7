import BetterSqlite3 from 'better-sqlite3';
import { randomBytes } from 'node:crypto';
import { copyFileSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createControlPlane, type Addresses, type ControlPlane, type Overrides } from '../../control-plane/app.js';
import type { SmtpSettings } from '../../control-plane/mail/settings.js';
import { StripePayments, type StripeSettings } from '../../control-plane/payments/stripe.js';
import { createAccount, type SignUp } from '../../control-plane/services/identity/sign-in/sign-up.js';
import { openSession } from '../../control-plane/services/identity/sessions/sessions.js';
import { LINES_A_RUN, SOURCES, linesAfter } from '../../control-plane/services/audit-out/sources.js';
import { envelopeOf } from '../../control-plane/services/events/envelope.js';
import { noteNetwork } from '../../control-plane/services/identity/sessions/sign-in-networks.js';
import { query } from '../../control-plane/store/sql.js';
import type { Config, RateLimits, TlsSettings } from '../../control-plane/config.js';
import { ApiClient, type Inspect, type InstanceBody } from './api-client.js';
import { checkAgainstDocument } from './openapi-conformance.js';
import { eventually } from '../../scripts/eventually.js';
import { FakeAgent } from './fake-agent.js';
import { memoryFolder } from './memory-folder.js';
import { ManualClock } from './manual-clock.js';
import { newDatabase } from './new-database.js';
import { staleOf } from './remembered.js';
import { PLAIN_TEXT } from './plain-text.js';
import { TableDigests, tablesOf } from './table-digests.js';
import { WatchedLog } from './watched-log.js';
import type { FakeAgentOptions } from './fake-enrollment.js';

const OPERATOR = { email: 'operator@example.com', password: 'operator password' };

/** Nobody guesses these passwords. */
export const CHEAP_PASSWORDS = { N: 2, r: 1, p: 1 };

const UNLIMITED: RateLimits = {
  perAddress: 1e9,
  perCredential: 1e9,
  attemptsPerAddress: 1e9,
  attemptsPerAccount: 1e9,
};

/** After how many writes of a test the memory of the control plane is compared with its database. */
const WRITES_TO_CHECK = 5;

/** Events that are searched for secrets at the end of a test: some tests make millions. */
const MOST_WATCHED_EVENTS = 2_000;

interface Options {
  /** Otherwise in plain text. The clock shows the present time then: certificates are judged by it. */
  tls?: TlsSettings;
  rateLimits?: Partial<RateLimits>;
  stripe?: StripeSettings;
  /** The mail server; then links begin with {@link PUBLIC_URL}. */
  mail?: SmtpSettings;
  /** A store that an earlier release has left: its file, its key, and when that was, in milliseconds since 1970. */
  left?: { database: string; secretKey: Buffer; at: number };
  /** How webhooks go out; otherwise no name has an address. `networks` can be reached although they are forbidden. */
  webhooks?: Overrides['webhooks'] & { networks?: string[] };
  /** Milliseconds since 1970 that the clock shows at the start. */
  at?: number;
  /** Where its database is; otherwise in memory. */
  folder?: string;
  /** Where the built console is; otherwise it serves none. */
  consoleFolder?: string;
}

export const PUBLIC_URL = 'https://gpus.example';

const ORIGIN = { network: '127.0.0.1', device: null };

interface Account {
  token: string;
  user: { id: string };
  organization: { id: string };
}

export interface Renter {
  api: ApiClient;
  email: string;
  userId: string;
  organizationId: string;
}

/** A control plane in this process, made by its production constructor, on a file and ports of its own. */
export class TestControlPlane {
  private running: ControlPlane | undefined;
  private addresses: Addresses = { http: '', grpc: '' };
  private operatorToken = '';
  private renters = 0;
  private writes = 0;
  private readonly snapshots: BetterSqlite3.Database[] = [];
  private readonly digests: TableDigests;
  readonly agents: FakeAgent[] = [];
  /** The file descriptor that audit lines for standard output go to. */
  auditFile: number | undefined;
  private readonly log = new WatchedLog();
  private readonly conformity = checkAgainstDocument(
    // What a document depends on.
    () => (this.config.payments ? 'with a payment provider' : 'without one'),
    () => this.url,
  );
  /** Every answer that a test hears is held against the served document. */
  private readonly inspect: Inspect = async (...heard) => {
    await this.log.inspect(...heard);
    await this.conformity(...heard);
    // The workers that the commit has woken run in the next turn.
    await nextTurn();
    if (heard[0] !== 'GET' && ++this.writes % WRITES_TO_CHECK === 0) this.checkMemory();
  };

  private constructor(
    readonly clock: ManualClock,
    private readonly folder: string,
    private readonly config: Config,
    private readonly webhooks: Overrides['webhooks'],
  ) {
    this.digests = new TableDigests(config.database);
  }

  static async start({
    rateLimits = {},
    stripe,
    mail,
    tls,
    left,
    webhooks: { networks: webhookNetworks = [], ...webhooks } = {},
    at = left?.at,
    folder = memoryFolder('gpurent-test-'),
    consoleFolder,
  }: Options = {}): Promise<TestControlPlane> {
    const config: Config = {
      httpAddress: '127.0.0.1:0',
      grpcAddress: '127.0.0.1:0',
      tls: tls ?? PLAIN_TEXT,
      database: join(folder, 'gpurent.db'),
      secretKey: left?.secretKey ?? randomBytes(32),
      logLevel: 'silent',
      logFormat: null,
      rateLimits: { ...UNLIMITED, ...rateLimits },
      destroyErrorsAfterMs: 24 * 3_600_000,
      webhookNetworks,
      ...(mail ? { mail, publicUrl: PUBLIC_URL } : {}),
      ...(consoleFolder === undefined ? {} : { consoleFolder }),
      ...(stripe ? { payments: () => new StripePayments(stripe) } : {}),
    };
    if (left) copyFileSync(left.database, config.database);
    else if (!existsSync(config.database)) writeFileSync(config.database, newDatabase());
    const test = new TestControlPlane(new ManualClock(tls ? Date.now() : at), folder, config, {
      // No test sends a packet off the machine.
      resolve: async () => [],
      ...webhooks,
    });
    for (const secret of [
      config.secretKey.toString('hex'),
      stripe?.secretKey,
      stripe?.webhookSecret,
      mail?.login?.password,
    ])
      test.log.keepSecret(secret ?? '');
    await test.boot();
    if (!left) await test.core.createOperator(OPERATOR.email, OPERATOR.password);
    await test.signInOperator();
    return test;
  }

  get core(): ControlPlane {
    if (!this.running) throw new Error('the control plane is down');
    return this.running;
  }

  get url(): string {
    return `http://${this.addresses.http}`;
  }

  get api(): ApiClient {
    return new ApiClient(`http://${this.addresses.http}`, undefined, this.inspect);
  }

  get operator(): ApiClient {
    return this.api.as(this.operatorToken);
  }

  /** Opens a new session of the operator. */
  async signInOperator(): Promise<void> {
    const { token } = await this.api.post<{ token: string }>('/v1/auth/sign-in', OPERATOR);
    this.operatorToken = token;
  }

  /** As if the store were an older copy, just restored: its hosts may know more than it does. */
  pretendRestored(): void {
    this.clock.advance(1);
    const restored = { key: 'restored_at', value: String(this.clock.now()) };
    this.core.platform.store.transact((tx) => {
      tx.run(query.deleteFrom('meta').where('key', '=', restored.key));
      tx.run(query.insertInto('meta').values(restored));
      tx.run(query.updateTable('machines').set({ needs_resync: 1 }));
    });
  }

  /** Takes a renter out of the organization of its own, whose last admin it is. */
  dissolve({ userId, organizationId }: Renter): void {
    const membership = query.deleteFrom('memberships').where('user_id', '=', userId);
    this.core.platform.store.transact((tx) => tx.run(membership.where('organization_id', '=', organizationId)));
  }

  setBalance(organizationId: string, balance_micro: number): void {
    this.core.platform.store.transact((tx) =>
      tx.run(query.updateTable('organizations').set({ balance_micro }).where('id', '=', organizationId)),
    );
  }

  makeOperator(userId: string): void {
    this.core.platform.store.transact((tx) =>
      tx.run(query.updateTable('users').set({ is_operator: 1 }).where('id', '=', userId)),
    );
  }

  get lastAgent(): FakeAgent {
    const agent = this.agents.at(-1);
    if (!agent) throw new Error('no host was made yet');
    return agent;
  }

  /** What its store is encrypted with. */
  get secretKey(): Buffer {
    return this.config.secretKey;
  }

  get databaseFile(): string {
    return this.config.database;
  }

  get grpcAddress(): string {
    return this.addresses.grpc;
  }

  /** Stops the control plane, and lets go of its database, which another one may replace then. */
  async leave(): Promise<void> {
    await this.core.stop();
    this.digests.close();
  }

  /** Starts again on the same file and the same ports, with settings of these for others. */
  async restart(changes: Partial<Config> = {}): Promise<void> {
    await this.core.stop();
    await this.boot(changes);
  }

  async stop(): Promise<void> {
    this.checkMemory();
    const told = this.toldEvents();
    for (const agent of this.agents) agent.close();
    await this.core.stop();
    this.cleanUp(told);
  }

  /** Throws when the control plane remembers something that its database does not say. */
  checkMemory(): void {
    const stale = this.running ? staleOf(this.running.platform) : [];
    if (stale.length > 0) throw new Error(`the control plane remembers what is over: ${stale.join('; ')}`);
  }

  /** Returns the newest events as streams, pages and webhooks tell them, and the last lines of the audit log. */
  private toldEvents(): string[] {
    const { platform } = this.core;
    const newest = query.selectFrom('events').selectAll().orderBy('at', 'desc').limit(MOST_WATCHED_EVENTS);
    return platform.store.transact((tx) => {
      const events = tx.all(newest).map((event) => JSON.stringify(envelopeOf(platform, event)));
      const last = Math.max(SOURCES.audit.newest(tx) - LINES_A_RUN, 0);
      return [...events, ...linesAfter(tx, 'audit', last).map(({ text }) => text)];
    });
  }

  /** Removes what is left of one that was stopped by itself. Throws when it has logged a secret, or there is one in `told`. */
  cleanUp(told: readonly string[] = []): void {
    for (const database of this.snapshots) database.close();
    this.digests.close();
    for (const agent of this.agents) agent.close();
    rmSync(this.folder, { recursive: true, force: true });
    this.log.check(told);
  }

  /** Moves time and lets every worker run once. */
  advance(ms: number): void {
    this.clock.advance(ms);
    this.core.workers.runAll();
  }

  /** Resolves when the control plane has answered a request: it has begun to handle all that was sent to it before. */
  async roundTrip(): Promise<void> {
    await this.api.request('GET', '/healthz');
  }

  /** A digest of each table, to compare before and after; less the moments at which credentials were used. */
  dump(): Readonly<Record<string, string>> {
    return this.digests.read();
  }

  /** Remembers every row; the answer puts all of them back, whatever has happened since. */
  snapshot(): () => void {
    const database = new BetterSqlite3(this.config.database);
    const tables = tablesOf(database);
    database.exec("ATTACH DATABASE ':memory:' AS saved");
    for (const name of tables) database.exec(`CREATE TABLE saved.${name} AS SELECT * FROM main.${name}`);
    this.snapshots.push(database);
    return () => {
      const restore = database.transaction(() => {
        database.pragma('defer_foreign_keys = ON');
        for (const name of tables) database.exec(`DELETE FROM main.${name}`);
        for (const name of tables) database.exec(`INSERT INTO main.${name} SELECT * FROM saved.${name}`);
      });
      // Work in the background may have written in this turn.
      this.core.platform.store.commit();
      restore.immediate();
      this.core.platform.store.noteUnknownChange();
    };
  }

  /** What this control plane has logged at this level of pino's (40: warning, 50: error) or above. */
  logged(level: number): string[] {
    return this.log.atLeast(level);
  }

  /** All rows of all tables as text, to look for what must not be there. */
  everythingStored(): string {
    const database = new BetterSqlite3(this.config.database, { readonly: true });
    try {
      return JSON.stringify(tablesOf(database).map((name) => database.prepare(`SELECT * FROM ${name}`).all()));
    } finally {
      database.close();
    }
  }

  /** A user with an organization of their own and credit. */
  async renter(creditMicro = 100_000_000): Promise<Renter> {
    const email = `renter${++this.renters}@example.com`;
    const request = { email, password: 'a renter password', name: 'Renter' };
    const account = this.core.platform.mail
      ? await makeAccount(this, request)
      : await this.api.post<Account>('/v1/auth/sign-up', request);
    if (creditMicro > 0) {
      const credit = { amount_micro: creditMicro, reason: 'test' };
      await this.operator.post(`/v1/operator/organizations/${account.organization.id}/credits`, credit);
    }
    return { api: this.api.as(account.token), email, userId: account.user.id, organizationId: account.organization.id };
  }

  async enrollmentToken(maxUses = 1): Promise<string> {
    return (await this.operator.post<{ token: string }>('/v1/operator/enrollment-tokens', { max_uses: maxUses })).token;
  }

  /** An enrolled, connected host that answers by itself unless told otherwise. */
  async host(options: FakeAgentOptions = {}): Promise<FakeAgent> {
    const now = () => this.clock.monotonic();
    const agent = await FakeAgent.enroll(this.grpcAddress, await this.enrollmentToken(), { now, ...options });
    this.log.keepSecret(agent.credential);
    this.agents.push(agent);
    await agent.connect();
    return agent;
  }

  async offer(agent: FakeAgent, numGpus = 1, priceMicro = 1_000_000): Promise<string> {
    const offer = await this.operator.post<{ id: string }>('/v1/operator/offers', {
      machine_id: agent.hostId,
      num_gpus: numGpus,
      price_per_hour_micro: priceMicro,
      storage_price_per_gb_hour_micro: 100,
    });
    return offer.id;
  }

  async template(fields: Record<string, unknown> = {}): Promise<string> {
    const template = await this.operator.post<{ id: string }>('/v1/operator/templates', {
      name: 'Test',
      image: 'test:1',
      ...fields,
    });
    return template.id;
  }

  /** Starts on what a control plane before it has left. */
  async boot(changes: Partial<Config> = {}): Promise<void> {
    this.digests.close();
    Object.assign(this.config, changes);
    if (this.addresses.http) Object.assign(this.config, { httpAddress: this.addresses.http });
    // A start on a full disk serves no hosts yet.
    if (this.addresses.grpc) Object.assign(this.config, { grpcAddress: this.addresses.grpc });
    this.running = createControlPlane(this.config, this.log.logger, {
      clock: this.clock,
      passwordCost: CHEAP_PASSWORDS,
      hostsAreHere: true,
      ...(this.auditFile === undefined ? {} : { auditFile: this.auditFile }),
      ...(this.webhooks ? { webhooks: this.webhooks } : {}),
    });
    this.addresses = await this.running.start({ heartbeat: false });
  }
}

/** Makes an account as a sign-up does whose address was confirmed: so no mail of it is among those that a test looks at. */
async function makeAccount(test: TestControlPlane, { email, password, name }: SignUp): Promise<Account> {
  const { platform } = test.core;
  const passwordHash = await platform.passwords.hash(password);
  return platform.store.transact((tx) => {
    const fields = { email, name, passwordHash, isOperator: false, email_verified_at: tx.now };
    const { user, organization } = createAccount(tx, fields, undefined, ORIGIN.network);
    noteNetwork(tx, user.id, ORIGIN.network);
    const { token } = openSession(platform, tx, user.id, ORIGIN);
    return { token, user, organization: { id: organization?.id ?? '' } };
  });
}

/** Polls the public API until the instance has the status; says why it never will have it. */
export function statusIs(api: ApiClient, id: string, status: string, timeoutMs?: number): Promise<InstanceBody> {
  return eventually(
    `instance ${id} to be ${status}`,
    async () => {
      const instance = await api.get<InstanceBody>(`/v1/instances/${id}`);
      if (instance.status === 'error' && status !== 'error') {
        throw new Error(`${instance.error_code}: ${instance.error_message}`);
      }
      return instance.status === status && instance;
    },
    timeoutMs,
  );
}
