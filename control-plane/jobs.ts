import type { Logger } from '../shared/logger.js';
import type { WorkerName } from './domain/worker-name.js';
import { expireApiKeys } from './services/organizations/keys/api-keys.js';
import { schedulerOf } from './services/actions/run-schedules.js';
import { dispatchCommands } from './services/reconciler/dispatch.js';
import { settleLostMachines } from './services/reconciler/lost-instances.js';
import { errorExpirerOf } from './services/housekeeping/error-expiry.js';
import { writeLastSeen } from './services/housekeeping/last-seen.js';
import { releaseHeldGpus } from './services/reconciler/held-gpus.js';
import { silenceWatcherOf } from './services/reconciler/silent-hosts.js';
import { operatorTellerOf } from './services/reconciler/operator-events.js';
import { enforceSuspensions } from './services/housekeeping/suspensions.js';
import { expireTransitions } from './services/reconciler/time-outs.js';
import { waitTellerOf } from './services/reconciler/wait-events.js';
import { factorRemoverOf } from './services/identity/factors/factor-removals.js';
import { purgeGuesses } from './services/identity/factors/factor-guesses.js';
import { purgeNetworks } from './services/identity/sessions/sign-in-networks.js';
import { linkSenderOf } from './services/identity/links/send-links.js';
import { destroyUnpaid } from './services/billing/settle/auto-destroy.js';
import { settlerOf } from './services/billing/settle/settle.js';
import { purgerOf } from './services/housekeeping/purge.js';
import { rolloutWorkerOf } from './services/rollouts/advance.js';
import { keepMeasurements } from './services/measurements/keep.js';
import type { mailWorkersOf } from './services/mail/mail-workers.js';
import type { PutOffWrites } from './put-off-writes.js';
import type { App } from './services/parts/parts.js';
import type { AuditSender } from './services/audit-out/sender.js';
import type { WebhookSender } from './services/webhooks/sender.js';
import type { Worker } from './workers/workers.js';

/** Every worker: `WorkerName` lists those that use cases nudge; the others run only once a second. */
export type Job =
  | WorkerName
  | 'api-keys'
  | 'auto-destroy'
  | 'disk-room'
  | 'error-expiry'
  | 'event-mails'
  | 'idle-log'
  | 'last-seen'
  | 'last-used'
  | 'held-gpus'
  | 'logs'
  | 'measurements'
  | 'operator-events'
  | 'purge'
  | 'rollouts'
  | 'schedules'
  | 'second-factors'
  | 'silent-hosts'
  | 'suspensions'
  | 'time-outs'
  | 'wait-events';

/** What also runs while the disk of the database is full: it ends cost, keeps what hosts have reported, or frees space. */
const RUN_ON_FULL_DISK: ReadonlySet<Job> = new Set<Job>([
  'disk-room',
  'idle-log',
  'purge',
  'settle',
  'last-seen',
  'silent-hosts',
  'lost-machines',
  'held-gpus',
  'dispatch',
  'time-outs',
  'auto-destroy',
  'error-expiry',
  'suspensions',
  // Its starts wait until there is room.
  'schedules',
  'api-keys',
  'logs',
  'mail',
]);

interface Makers {
  mails: ReturnType<typeof mailWorkersOf>;
  webhooks: WebhookSender;
  audit: AuditSender;
  putOff: PutOffWrites;
}

/**
 * Returns what runs every second, by name. While the disk of the database is full, jobs that only add pause. While a start has put off
 * what it has to write, only the disk is watched.
 */
export function jobsOf(platform: App, logger: Logger, makers: Makers): Record<Job, Worker> {
  const jobs = allJobs(platform, logger, makers);
  const pauses = (name: Job) =>
    name !== 'disk-room' && (makers.putOff.isWaiting || (platform.room.isFull && !RUN_ON_FULL_DISK.has(name)));
  const pausing = (Object.keys(jobs) as Job[]).map((name) => [name, () => (pauses(name) ? {} : jobs[name]())] as const);
  return Object.fromEntries(pausing) as Record<Job, Worker>;
}

function allJobs(platform: App, logger: Logger, { mails, webhooks, audit, putOff }: Makers): Record<Job, Worker> {
  const { isDrill: drill } = platform;
  return {
    'disk-room': () => {
      const moved = platform.room.look();
      putOff.tryAgain();
      return moved;
    },
    dispatch: () => (drill ? {} : dispatchCommands(platform, logger)),
    'time-outs': () => expireTransitions(platform),
    'wait-events': waitTellerOf(platform),
    'operator-events': operatorTellerOf(platform),
    rollouts: rolloutWorkerOf(platform),
    schedules: schedulerOf(platform),
    suspensions: () => enforceSuspensions(platform),
    'held-gpus': () => releaseHeldGpus(platform),
    'lost-machines': () => settleLostMachines(platform),
    // Before the settlement, which then charges nothing that is paused.
    'silent-hosts': silenceWatcherOf(platform),
    settle: settlerOf(platform),
    'auto-destroy': () => destroyUnpaid(platform),
    'error-expiry': errorExpiryOf(platform),
    'last-seen': () => writeLastSeen(platform),
    'api-keys': () => expireApiKeys(platform),
    'last-used': () => platform.lastUsed.flush(platform.store),
    logs: () => platform.logs.expire(),
    measurements: () => keepMeasurements(platform),
    'event-mails': mails.make,
    'account-links': linkSenderOf(platform),
    'second-factors': factorRemoverOf(platform),
    mail: mails.send,
    purge: purgerOf(platform, [purgeGuesses, purgeNetworks]),
    webhooks: () => (drill ? {} : webhooks.run()),
    'audit-out': () => (drill ? {} : audit.run()),
    'idle-log': () => ({ truncated: Number(platform.store.truncateIdleLog()) }),
  };
}

function errorExpiryOf(platform: App): () => { destroyed: number } {
  const { destroyErrorsAfterMs } = platform;
  return destroyErrorsAfterMs === null ? () => ({ destroyed: 0 }) : errorExpirerOf(platform, destroyErrorsAfterMs);
}
