import type { Clock } from '../../shared/clock.js';
import type { Ids } from '../../shared/ids.js';
import type { PaymentProvider } from '../domain/payment.js';
import type { SignUpMode } from '../domain/sign-up.js';
import type { Store } from '../store/store.js';
import type { ClockWatch } from './clock-watch.js';
import type { Authority } from './hosts/authority.js';
import type { CommandAnswers } from './hosts/command-answers.js';
import type { HostLinks } from './hosts/host-links.js';
import type { LastUsed } from './accounts/last-used.js';
import type { Passwords } from './accounts/passwords.js';
import type { LogHub } from './hosts/logs.js';
import type { Sealer } from './sealer.js';
import type { Tenure } from './hosts/tenure.js';

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
