import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { FastifyInstance } from 'fastify';
import type { CertificateTerm } from '../shared/network/certificate-term.js';
import { messageOf } from '../shared/coded-error.js';
import { systemClock, type Clock } from '../shared/clock.js';
import { randomIds, type Ids } from '../shared/ids.js';
import type { Logger } from '../shared/logger.js';
import { NO_KEEPALIVE } from '../shared/protocol.js';
import { versionOfTarball } from '../shared/release/newer.js';
import { openCertificates, type Certificates } from './certificates.js';
import type { Config } from './config.js';
import type { HostRefusal } from './domain/machines/host-refusal.js';
import { jobsOf, type Job } from './jobs.js';
import { Gateway } from './grpc/gateway.js';
import { HostTls } from './grpc/host-tls.js';
import { ReleaseFile } from './host-release/release-file.js';
import { readConsole } from './http/console/files.js';
import { consoleInDrill } from './http/drill.js';
import { Metrics } from './http/metrics/metrics.js';
import { currentAddress, currentRequest } from './http/run-handlers.js';
import { createHttpServer } from './http/server.js';
import { closeHttp, listen } from './listen.js';
import { fetchNothing, issuerFetcher } from './outbound/fetch-issuer.js';
import { OpenIdClient } from './outbound/openid.js';
import { webhookPoster, type OutboundOptions } from './outbound/post-webhook.js';
import { askingSystem } from './outbound/resolve-name.js';
import { SmtpTransport } from './mail/smtp.js';
import { manualPayments } from './payments/manual.js';
import { createOperator } from './services/identity/sign-in/sign-up.js';
import { forgetRunFloors, restartExhaustionClocks, shiftUnsettledTimes } from './services/metering/clock-shift.js';
import { ClockStepDetector } from './services/system/clock-steps.js';
import { SteadyClock } from './services/system/steady-clock.js';
import { recordSettings } from './services/system/record-settings.js';
import { Authority } from './services/secrets/authority.js';
import { countDestroyed } from './services/oversight/counts.js';
import { PendingCommands } from './services/connections/pending-commands.js';
import { AgentConnections } from './services/connections/agent-connections.js';
import { checkKey, isKeyOf } from './services/secrets/key-check.js';
import { forgetEncrypted } from './services/instances/forget-secrets.js';
import { reencrypt } from './services/secrets/key-rotation.js';
import { forgetIssuerSecrets } from './services/identity/companies/issuers.js';
import { forgetTotpSecrets } from './services/identity/factors/second-factors.js';
import { shiftRemovals } from './services/identity/factors/factor-removals.js';
import { mailWorkersOf } from './services/mail/mail-workers.js';
import { stdoutOutput, webhookOutput } from './services/audit-out/outputs.js';
import { AuditSender } from './services/audit-out/sender.js';
import { beginEventEpoch } from './services/events/epoch.js';
import { LastUsed } from './services/system/last-used.js';
import { Passwords, type PasswordCost } from './services/secrets/passwords.js';
import { LogRelay } from './services/connections/log-relay.js';
import { makeParts, type App } from './services/parts/parts.js';
import type { Platform } from './services/system/platform.js';
import { WorkerRuns } from './services/system/worker-runs.js';
import { shiftWebhookTimes } from './services/webhooks/schedule.js';
import { WebhookSender } from './services/webhooks/sender.js';
import { Encryption } from './services/secrets/encryption.js';
import { writeMeasurements } from './services/measurements/keep.js';
import { beginTerm } from './services/connections/term.js';
import { PutOffWrites } from './put-off-writes.js';
import { standardOutput } from './standard-output.js';
import { adoptNextKey, prepareNextKey, readNextKey } from './secret-key.js';
import { backUp } from './store/backup.js';
import { ageOf, readCopies } from './store/copies.js';
import { isDrill } from './store/meta.js';
import { DiskRoom } from './store/disk-room.js';
import { ScheduledBackups } from './store/scheduled-backups.js';
import { Store, StoreUnavailable, type Tx } from './store/store.js';
import { Workers } from './workers/workers.js';

export interface Overrides {
  clock?: Clock;
  ids?: Ids;
  /** Schedules `run` after the code that runs now. */
  defer?: (run: () => void) => void;
  /** Every use case commits alone, instead of together with others of its turn of the event loop. */
  commitsAlone?: boolean;
  /** The cost of a password hash. No setting can lower it; only tests do. */
  passwordCost?: PasswordCost;
  /** How webhooks resolve names, and which certificates they trust. No setting can change that; only tests do. */
  webhooks?: Pick<OutboundOptions, 'resolve' | 'trusted'>;
  /** Notices no dead host by keepalive: where hosts are in this process, they cannot answer while it computes. */
  hostsAreHere?: boolean;
  /** Where audit lines for standard output go: a file descriptor that does not block. No setting can change that; only tests do. */
  auditFile?: number;
}

export interface Addresses {
  /** `host:port` */
  http: string;
  grpc: string;
}

export interface ControlPlane {
  platform: App;
  workers: Workers<Job>;
  /** Binds both listeners and starts running the workers every second. Throws SetupError when an address is in use. */
  start(options?: { heartbeat: boolean }): Promise<Addresses>;
  /** Reads the operator's certificate again. */
  reload(): Promise<void>;
  /** Creates a user that is an operator; without a password, with the token of a link that sets one. Refuses with EMAIL_TAKEN. */
  createOperator(email: string, password: string | null): Promise<{ token: string } | null>;
  /** Finishes open requests within fifteen seconds, ends the agents' streams and closes the database. */
  stop(): Promise<void>;
}

/**
 * Encrypts every secret in the database with a new key, which replaces the old one. Keeps the old key in the file `kept`, because
 * older backups need it. Returns the number of secrets and that file. Throws SetupError while a daemon runs.
 */
export function rotateKey(config: Config & { secretKeyFile: string }): { count: number; kept: string } {
  const store = new Store(config.database, systemClock);
  const before = openEncryption(store, config, systemClock);
  try {
    const count = reencrypt(store, before, new Encryption(prepareNextKey(config.secretKeyFile)));
    return { count, kept: adoptNextKey(config.secretKeyFile, systemClock.now()) };
  } finally {
    store.close();
  }
}

/**
 * Deletes all secrets that were encrypted with a lost key; from then on the database uses the present key. Returns the numbers of
 * templates and instances that lost secrets, and the file with a copy of the old database in case somebody finds the key. Throws
 * SetupError while a daemon runs, and if the key is not lost.
 */
export function forgetSecrets(config: Config): ReturnType<typeof forgetEncrypted> & { kept: string } {
  const store = new Store(config.database, systemClock);
  try {
    const encryption = new Encryption(config.secretKey);
    const kept = `${config.database}.before-${new Date(systemClock.now()).toISOString().replace(/[:.]/g, '-')}`;
    if (!isKeyOf(store, encryption)) backUp(config.database, kept);
    return { ...forgetEncrypted(store, encryption, [forgetIssuerSecrets, forgetTotpSecrets]), kept };
  } finally {
    store.close();
  }
}

/** Connects the parts of the control plane; contains no rules. */
export function createControlPlane(config: Config, logger: Logger, overrides: Overrides = {}): ControlPlane {
  const { ids = randomIds, defer = setImmediate } = overrides;
  const clock = new SteadyClock(overrides.clock ?? systemClock);
  const room = new DiskRoom(config.database, config.reserveBytes ?? 0, logger);
  const store = new Store(config.database, clock, {
    ids,
    room,
    onNudge: (worker) => workers.nudge(worker),
    onCount: (counted) => metrics.count(counted),
    requestId: currentRequest,
    address: currentAddress,
    litestream: config.litestream ?? false,
    ...(overrides.commitsAlone ? {} : { deferCommit: defer }),
  });
  const putOff = new PutOffWrites(store, room);
  beginEventEpoch(store);
  const encryption = openEncryption(store, config, clock);
  const connections = new AgentConnections(clock);
  const drill = store.transact(isDrill);
  const backups =
    config.backups && !drill ? new ScheduledBackups(store, config.backups, clock, logger, room) : undefined;
  const withoutParts: Platform = {
    store,
    room,
    clock,
    ids,
    encryption,
    authority: new Authority(store, encryption, clock, ids),
    authorityFingerprint: null,
    connections,
    pendingCommands: new PendingCommands(clock),
    lastUsed: new LastUsed(),
    passwords: new Passwords(overrides.passwordCost),
    ...settingsOf(config),
    mail: config.mail && !drill ? new SmtpTransport(config.mail, clock) : null,
    openId: openIdOf(config, clock, logger, overrides, drill),
    logs: new LogRelay(clock, ids, connections),
    payments: (drill ? undefined : config.payments?.()) ?? manualPayments,
    defer,
    // No host is served before it has begun.
    term: { epoch: 0, incarnation: '' },
    clockSteps: new ClockStepDetector(store, clock, logger, CLOCK_STEP_EFFECTS, readBootId(), connections),
    workerRuns: new WorkerRuns(clock),
    backups: backups ?? null,
    isDrill: drill,
    bootedAt: clock.monotonic(),
  };
  const platform: App = Object.assign(withoutParts, makeParts(withoutParts));
  putOff.attempt(() => {
    platform.term = beginTerm(store, ids);
  });
  const webhooks = senderOf(platform, logger, overrides);
  const audit = auditSenderOf(platform, config, logger, overrides);
  const mails = mailWorkersOf(platform, logger);
  const workers = new Workers<Job>(
    jobsOf(platform, logger, { mails, webhooks, audit, putOff }),
    platform.workerRuns,
    logger,
    defer,
  );
  const metrics = metricsOf(platform, config, backups, () => certificates?.terms() ?? []);
  const onRefused = (reason: HostRefusal) => metrics.count({ what: 'host-refused', reason });
  const release = config.hostRelease === undefined ? undefined : new ReleaseFile(config.hostRelease);
  const gateway = new Gateway(platform, logger, onRefused, release, overrides.hostsAreHere ? NO_KEEPALIVE : {});
  let http: FastifyInstance | undefined;
  let certificates: Certificates | undefined;

  return {
    platform,
    workers,
    async start({ heartbeat } = { heartbeat: true }) {
      const { tls, settings } = config;
      audit.forgetOff();
      if (settings) putOff.attempt(() => recordSettings(store, settings));
      if (tls.http || tls.grpc) certificates = await openCertificates(platform.authority, tls, clock, logger);
      if (tls.grpc && !tls.files) platform.authorityFingerprint = await platform.authority.fingerprint();
      const shown = tls.http ? certificates?.identity : undefined;
      // A large fleet takes part of a second to read: nobody waits for that yet.
      platform.fleet.machines();
      const consoleFiles = readConsoleOf(config, drill);
      http = await createHttpServer(platform, logger, config.rateLimits, metrics, shown, consoleFiles, release);
      const hostSide = tls.grpc && certificates ? new HostTls(certificates, certificates.authority) : undefined;
      const addresses = {
        http: await listen(http, config.httpAddress),
        grpc: drill || putOff.isWaiting ? '' : await gateway.listen(config.grpcAddress, hostSide),
      };
      if (!drill && putOff.isWaiting)
        putOff.attempt(() => serveHostsLate(platform, () => gateway.listen(config.grpcAddress, hostSide), logger));
      if (heartbeat) workers.start();
      backups?.start();
      return addresses;
    },
    reload: async () => certificates?.identity.refresh(),
    createOperator: (email, password) => createOperator(platform, { email, password }),
    async stop() {
      certificates?.close();
      await closeHttp(http, clock);
      await gateway.close();
      await workers.stop();
      await webhooks.stop();
      await audit.stop();
      await mails.stop();
      writeIfPossible(logger, () => platform.lastUsed.flush(store));
      writeIfPossible(logger, () => writeMeasurements(platform));
      store.commit();
      await backups?.stop();
      store.close();
    },
  };
}

/** Returns what use cases know of the settings. */
function settingsOf(config: Config) {
  return {
    signUpMode: config.signUp ?? 'open',
    operatorsNeedFactor: config.operatorsNeedFactor ?? false,
    publicUrl: config.publicUrl ?? null,
    publicGrpcAddress: config.publicGrpcAddress ?? null,
    abuse: config.abuse ?? {},
    webhookNetworks: config.webhookNetworks ?? [],
    destroyErrorsAfterMs: config.destroyErrorsAfterMs ?? null,
    settings: config.settings ?? [],
    hostReleaseVersion: versionOfTarball(basename(config.hostRelease ?? '')) ?? null,
  };
}

/** Calls `write`, whose loss is small: a database that cannot be written keeps nothing from stopping in order. */
function writeIfPossible(logger: Logger, write: () => void): void {
  try {
    write();
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    logger.warn(`the last measurements and uses of credentials are lost: ${error.message}`);
  }
}

/** Serves hosts once a start on a full disk has written what it had put off. */
function serveHostsLate(platform: Platform, listenToHosts: () => Promise<string>, logger: Logger): void {
  // They get as long to connect as after any other start.
  platform.bootedAt = platform.clock.monotonic();
  listenToHosts().then(
    (address) => logger.info({ address }, 'hosts are served, which the start has put off'),
    (error: unknown) => logger.error({ err: error }, `hosts cannot be served: ${messageOf(error)}; restart the daemon`),
  );
}

function metricsOf(
  platform: App,
  { database }: Config,
  backups: ScheduledBackups | undefined,
  certificates: () => CertificateTerm[],
): Metrics {
  const { clock } = platform;
  const copyAges = () =>
    readCopies(database).map((place) => ({ target: place.target, ageMs: ageOf(place, clock.now()) }));
  const backupOverdueMs = () => backups?.overdueMs ?? 0;
  const facts = { backupOverdueMs, room: platform.room, certificates, copyAges };
  return new Metrics(facts, clock, countDestroyed(platform));
}

const CLOCK_STEP_EFFECTS = {
  shift: shiftStoredTimes,
  forgetFloors: forgetRunFloors,
  restartGrace: restartExhaustionClocks,
};

/** Moves every stored time that is not over by the size of a clock step. */
function shiftStoredTimes(tx: Tx, ms: number): void {
  shiftUnsettledTimes(tx, ms);
  shiftWebhookTimes(tx, ms);
  shiftRemovals(tx, ms);
}

function readConsoleOf({ consoleFolder }: Config, drill: boolean): ReturnType<typeof readConsole> {
  const files = consoleFolder === undefined ? undefined : readConsole(consoleFolder);
  return files && drill ? consoleInDrill(files) : files;
}

function openIdOf(
  { webhookNetworks = [] }: Config,
  clock: Clock,
  logger: Logger,
  { webhooks }: Overrides,
  drill: boolean,
): OpenIdClient {
  const fetching = drill ? fetchNothing : issuerFetcher({ allowed: webhookNetworks, ...webhooks });
  return new OpenIdClient(fetching, clock, logger);
}

function senderOf(platform: App, logger: Logger, { webhooks }: Overrides): WebhookSender {
  return new WebhookSender(platform, webhookPoster({ allowed: platform.webhookNetworks, ...webhooks }), logger);
}

/** The operator has chosen the webhook's address, so it can be a private one. */
const ANYWHERE = ['0.0.0.0/0', '::/0'];

function auditSenderOf(
  platform: App,
  { auditOut }: Config,
  logger: Logger,
  { webhooks, auditFile }: Overrides,
): AuditSender {
  const { clock } = platform;
  const outputs = auditOut?.stdout ? [stdoutOutput(standardOutput(clock, auditFile))] : [];
  if (auditOut?.webhook) {
    const post = webhookPoster({ allowed: ANYWHERE, resolve: askingSystem, isPlainAllowed: true, ...webhooks });
    outputs.push(webhookOutput(auditOut.webhook, post, clock));
  }
  return new AuditSender(platform, outputs, logger);
}

/**
 * Opens the encryption with the key of the database. After a rotation that was interrupted after its commit, that is the next
 * key.
 */
function openEncryption(store: Store, { secretKey, secretKeyFile }: Config, clock: Clock): Encryption {
  try {
    const next = secretKeyFile === undefined ? undefined : readNextKey(secretKeyFile);
    if (secretKeyFile !== undefined && next && isKeyOf(store, new Encryption(next))) {
      adoptNextKey(secretKeyFile, clock.now());
      return new Encryption(next);
    }
    const encryption = new Encryption(secretKey);
    checkKey(store, encryption);
    return encryption;
  } catch (error) {
    store.close();
    throw error;
  }
}

/** Returns the id of this boot of the machine; null: the kernel does not tell. */
function readBootId(): string | null {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return null;
  }
}
