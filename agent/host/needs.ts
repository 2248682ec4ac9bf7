import { messageOf } from '../../shared/coded-error.js';
import type { Logger } from '../../shared/logger.js';
import { isDockerAway } from '../domain/failure.js';

/** Something that this host needs. */
export interface Need {
  /** Provides it, or throws an error that says what to do. */
  meet: () => Promise<void>;
  /** Whether the host takes new work without it. */
  isOptional?: boolean;
  /** Whether it can go again after it was there. */
  canGo?: boolean;
}

/**
 * What an enrolled host needs. A need that is not met ends no agent, because the instances of this host need one: it is reported, keeps
 * new work away, and is looked at again by the upkeep.
 */
export class HostNeeds {
  /** By its name, why a need is not met. */
  private readonly unmet = new Map<string, string>();

  constructor(
    private readonly needs: Readonly<Record<string, Need>>,
    private readonly logger: Logger,
  ) {}

  /** Why this host takes nothing new; empty when it does. */
  get obstacle(): string {
    const kept = [...this.unmet].filter(([name]) => this.needs[name]?.isOptional !== true);
    return kept.map(([, reason]) => reason).join('; ');
  }

  /** Returns why needs are not met, also those without which the host takes new work. */
  get faults(): string[] {
    return [...this.unmet.values()];
  }

  /** Looks at what new work needs, at the start. Rejects only if Docker does not answer. */
  lookAtRequired(): Promise<void> {
    return this.look(Object.entries(this.needs).filter(([, { isOptional }]) => isOptional !== true));
  }

  /** Looks at what is optional. Rejects as {@link lookAtRequired}. */
  lookAtOptional(): Promise<void> {
    return this.look(Object.entries(this.needs).filter(([, { isOptional }]) => isOptional === true));
  }

  /** Looks at those that are not met, and at those that can go again. Rejects as {@link lookAtRequired}. */
  lookAgain(): Promise<void> {
    return this.look(Object.entries(this.needs).filter(([name, { canGo }]) => canGo === true || this.unmet.has(name)));
  }

  private async look(needs: readonly [string, Need][]): Promise<void> {
    const away: unknown[] = [];
    for (const [name, { meet }] of needs) {
      await meet().then(
        () => this.note(name, undefined),
        // What needs Docker is not known while that is away, which is reported by itself.
        (error: unknown) => (isDockerAway(error) ? away.push(error) : this.note(name, messageOf(error))),
      );
    }
    if (away.length > 0) throw away[0];
  }

  private note(name: string, reason: string | undefined): void {
    const before = this.unmet.get(name);
    if (reason === undefined) this.unmet.delete(name);
    else this.unmet.set(name, reason);
    if (reason === before) return;
    if (reason === undefined) this.logger.info(`${name}: as needed now`);
    else this.logger.error(`${name}: ${reason}`);
  }
}

/** No needs: for a host on which everything works. */
export const NO_NEEDS: Pick<HostNeeds, 'obstacle' | 'faults'> = { obstacle: '', faults: [] };
