import type { Clock } from '../../../shared/clock.js';
import type { Ids } from '../../../shared/ids.js';
import type { PaymentProvider } from '../../domain/payment.js';
import type { SignUpMode } from '../../domain/sign-up.js';
import type { Store } from '../../store/store.js';
import type { ClockWatch } from './clock-steps.js';
import type { Authority } from '../secrets/authority.js';
import type { CommandAnswers } from '../connections/pending-commands.js';
import type { HostLinks } from '../connections/agent-connections.js';
import type { LastUsed } from './last-used.js';
import type { Passwords } from '../secrets/passwords.js';
import type { LogHub } from '../connections/log-relay.js';
import type { Sealer } from '../secrets/encryption.js';
import type { Tenure } from '../connections/term.js';

/** What the use cases stand on. */
export interface Platform {
  store: Store;
  clock: Clock;
  ids: Ids;
  sealer: Sealer;
  /** Certifies hosts. */
  authority: Authority;
  /** The authority's fingerprint, where hosts are to know this control plane by it; null: by its operator's certificate, or not at all. */
  pin: string | null;
  hosts: HostLinks;
  answers: CommandAnswers;
  lastUsed: LastUsed;
  passwords: Passwords;
  signUpMode: SignUpMode;
  logs: LogHub;
  payments: PaymentProvider;
  tenure: Tenure;
  clockWatch: ClockWatch;
  /** When this process began, in monotonic milliseconds. */
  bootedAt: number;
}
