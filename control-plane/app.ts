import type { FastifyInstance } from 'fastify';
import { systemClock, type Clock } from '../shared/clock.js';
import { SetupError, messageOf } from '../shared/coded-error.js';
import { randomIds, type Ids } from '../shared/ids.js';
import type { Logger } from '../shared/logger.js';
import type { Config } from './config.js';
import { Gateway } from './grpc/gateway.js';
import { Metrics } from './http/metrics.js';
import { createHttpServer } from './http/server.js';
import { manualPayments } from './payments/manual.js';
import { StripePayments } from './payments/stripe.js';
import { createOperator } from './services/accounts/accounts.js';
import { ClockWatch } from './services/clock-watch.js';
import { CommandAnswers } from './services/hosts/command-answers.js';
import { dispatchCommands } from './services/hosts/dispatch.js';
import { settleLostMachines } from './services/instances/host-loss.js';
import { expireTransitions } from './services/instances/time-outs.js';
import { HostLinks } from './services/hosts/host-links.js';
import { checkKey } from './services/key-check.js';
import { LastUsed } from './services/accounts/last-used.js';
import { LogHub } from './services/hosts/logs.js';
import { destroyUnpaid } from './services/money/auto-destroy.js';
import { settleDue } from './services/money/settle.js';
import type { Platform } from './services/platform.js';
import { Sealer } from './services/sealer.js';
import { beginTenure } from './services/hosts/tenure.js';
import { ScheduledBackups } from './store/scheduled-backups.js';
import { Store, type WorkerName } from './store/store.js';
import { Workers } from './workers/workers.js';

export interface Overrides {
  clock?: Clock;
  ids?: Ids;
  /** Runs work soon, after what runs now. */
  defer?: (run: () => void) => void;
}

/** Every worker: those that use cases wake, and those that only the heartbeat runs. */
type Chore = WorkerName | 'auto-destroy' | 'last-used' | 'logs' | 'time-outs';

export interface Addresses {
  /** `host:port` */
  http: string;
  grpc: string;
}

export interface ControlPlane {
  platform: Platform;
  workers: Workers<Chore>;
  /** Binds both listeners and starts the workers' heartbeat. Throws SetupError when an address is taken. */
  start(options?: { heartbeat: boolean }): Promise<Addresses>;
  /** Makes a user that is an operator. Refuses with EMAIL_TAKEN. */
  createOperator(email: string, password: string): Promise<void>;
  /** Answers what is under way, ends the streams, closes the file. */
  stop(): Promise<void>;
}

/** All wiring, and nothing else. */
export function createControlPlane(config: Config, logger: Logger, overrides: Overrides = {}): ControlPlane {
  const { clock = systemClock, ids = randomIds, defer = setImmediate } = overrides;
  const store = new Store(config.database, clock, (worker) => workers.nudge(worker));
  const sealer = new Sealer(config.secretKey);
  try {
    checkKey(store, sealer);
  } catch (error) {
    store.close();
    throw error;
  }
  const hosts = new HostLinks(clock);
  const platform: Platform = {
    store,
    clock,
    ids,
    sealer,
    hosts,
    answers: new CommandAnswers(clock),
    lastUsed: new LastUsed(),
    logs: new LogHub(clock, ids, hosts),
    payments: config.stripe ? new StripePayments(config.stripe) : manualPayments,
    tenure: beginTenure(store, ids),
    clockWatch: new ClockWatch(store, clock, logger),
    bootedAt: clock.monotonic(),
  };
  const workers = new Workers<Chore>(
    {
      dispatch: () => dispatchCommands(platform),
      'time-outs': () => expireTransitions(platform),
      'lost-machines': () => settleLostMachines(platform),
      settle: () => settleDue(platform),
      'auto-destroy': () => destroyUnpaid(platform),
      'last-used': () => platform.lastUsed.flush(store),
      logs: () => platform.logs.expire(),
    },
    logger,
    defer,
  );
  const backups = config.backups ? new ScheduledBackups(store, config.backups, clock, logger) : undefined;
  const metrics = new Metrics();
  store.onCount = (counted) => metrics.count(counted);
  const gateway = new Gateway(platform, logger);
  let http: FastifyInstance | undefined;

  return {
    platform,
    workers,
    async start({ heartbeat } = { heartbeat: true }) {
      http = await createHttpServer(platform, logger, config.rateLimits, metrics);
      const addresses = {
        http: await listen(http, config.httpAddress),
        grpc: await gateway.listen(config.grpcAddress),
      };
      if (heartbeat) workers.start();
      backups?.start();
      return addresses;
    },
    createOperator: (email, password) => createOperator(platform, { email, password }),
    async stop() {
      await http?.close();
      await gateway.close();
      await workers.stop();
      platform.lastUsed.flush(store);
      await backups?.stop();
      store.close();
    },
  };
}

async function listen(http: FastifyInstance, address: string): Promise<string> {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/[[\]]/g, '');
  try {
    const url = await http.listen({ host, port: Number(address.slice(colon + 1)) });
    return new URL(url).host;
  } catch (error) {
    throw new SetupError(`cannot serve HTTP on ${address}: ${messageOf(error)}`);
  }
}
