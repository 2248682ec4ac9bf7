import type { Clock } from '../../../shared/clock.js';
import type { Ids } from '../../../shared/ids.js';
import type { OpenId } from '../../domain/identity/company.js';
import type { MailTransport } from '../../domain/mail/mail.js';
import type { PaymentProvider } from '../../domain/money/payment.js';
import type { Setting } from '../../domain/setting.js';
import type { SignUpMode } from '../../domain/identity/sign-up.js';
import type { DiskRoom } from '../../store/disk-room.js';
import type { ScheduledBackups } from '../../store/scheduled-backups.js';
import type { Store } from '../../store/store.js';
import type { ClockStepDetector } from './clock-steps.js';
import type { WorkerRuns } from './worker-runs.js';
import type { Authority } from '../secrets/authority.js';
import type { PendingCommands } from '../connections/pending-commands.js';
import type { AgentConnections } from '../connections/agent-connections.js';
import type { LastUsed } from './last-used.js';
import type { Passwords } from '../secrets/passwords.js';
import type { LogRelay } from '../connections/log-relay.js';
import type { Encryption } from '../secrets/encryption.js';
import type { Term } from '../connections/term.js';

/** What use cases need that only read and write the store. */
export interface Core {
  store: Store;
  clock: Clock;
  ids: Ids;
  encryption: Encryption;
}

/** The parts of all use cases. */
export interface Platform extends Core {
  /** Whether the disk of the database is full: then only what ends cost or must be kept is done. */
  room: Pick<DiskRoom, 'isFull' | 'reservedBytes' | 'freeShare' | 'look'>;
  /** Issues the certificates of hosts. */
  authority: Authority;
  /**
   * The authority's fingerprint, if hosts identify this control plane by it; null if TLS uses the operator's certificate or is
   * off.
   */
  authorityFingerprint: string | null;
  connections: AgentConnections;
  pendingCommands: PendingCommands;
  lastUsed: LastUsed;
  passwords: Passwords;
  signUpMode: SignUpMode;
  /** Whether operators act only in sessions in which they have given a second factor. */
  operatorsNeedFactor: boolean;
  /** The address at which people reach this control plane, without a slash at its end; null: links cannot be made. */
  publicUrl: string | null;
  /** The address that hosts dial, `HOST:PORT`; null: the operator has not named it. */
  publicGrpcAddress: string | null;
  /** Where abuse is to be reported; empty: the operator has named nothing. */
  abuse: { email?: string; url?: string };
  /** Forbidden networks that webhooks can reach all the same, because the operator allows them. */
  webhookNetworks: readonly string[];
  /** Sends mails; null: this control plane sends none. With it, there is a public address. */
  mail: MailTransport | null;
  /** Asks the issuers of companies who somebody is. */
  openId: OpenId;
  logs: LogRelay;
  payments: PaymentProvider;
  /** Milliseconds in `error` after which an instance is destroyed; null: never. */
  destroyErrorsAfterMs: number | null;
  /** Runs a function in a later turn of the event loop, after the commit of this one. */
  defer: (run: () => void) => void;
  term: Term;
  clockSteps: ClockStepDetector;
  workerRuns: WorkerRuns;
  /** The settings as operators see them, without secrets. */
  settings: readonly Setting[];
  /** The version of the release that hosts are given; null: none, or its file is not named as releases are. */
  hostReleaseVersion: string | null;
  /** The scheduled backups; null: none are scheduled. */
  backups: Pick<ScheduledBackups, 'state'> | null;
  /** Whether the database was restored for a drill: nothing reaches hosts, mail servers, webhooks, issuers or payment providers. */
  isDrill: boolean;
  /** When this process started, in milliseconds of the monotonic clock. */
  bootedAt: number;
}
