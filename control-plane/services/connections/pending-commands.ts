import { withTimeout, type Clock } from '../../../shared/clock.js';

export type CommandAnswer = { kind: 'accepted' } | { kind: 'refused'; message: string } | { kind: 'none' };

/** Lets a request wait for its host's first answer to a command. Only start needs it; every other use case answers at once. */
export class PendingCommands {
  private readonly waiting = new Map<string, (answer: CommandAnswer) => void>();

  constructor(private readonly clock: Clock) {}

  /** Returns the first answer to the command, or `none` after `timeoutMs`. */
  async wait(commandId: string, timeoutMs: number): Promise<CommandAnswer> {
    const answer = new Promise<CommandAnswer>((resolve) => this.waiting.set(commandId, resolve));
    try {
      return await withTimeout(this.clock, timeoutMs, answer, () => ({ kind: 'none' }));
    } finally {
      this.waiting.delete(commandId);
    }
  }

  resolve(commandId: string, answer: CommandAnswer): void {
    this.waiting.get(commandId)?.(answer);
  }
}
