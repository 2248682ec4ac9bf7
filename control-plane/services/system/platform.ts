import type { Clock } from '../../../shared/clock.js';
import type { Ids } from '../../../shared/ids.js';
import type { PaymentProvider } from '../../domain/payment.js';
import type { SignUpMode } from '../../domain/sign-up.js';
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

/** What the use cases stand on. */
export interface Platform {
  store: Store;
  clock: Clock;
  ids: Ids;
  encryption: Encryption;
  /** Certifies hosts. */
  authority: Authority;
  /** The authority's fingerprint, where hosts are to know this control plane by it; null: by its operator's certificate, or not at all. */
  authorityFingerprint: string | null;
  connections: AgentConnections;
  pendingCommands: PendingCommands;
  lastUsed: LastUsed;
  passwords: Passwords;
  signUpMode: SignUpMode;
  logs: LogRelay;
  payments: PaymentProvider;
  term: Term;
  clockSteps: ClockStepDetector;
  workerRuns: WorkerRuns;
  /** When this process began, in monotonic milliseconds. */
  bootedAt: number;
}
