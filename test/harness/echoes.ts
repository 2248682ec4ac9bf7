/** Calls of a fake host that wait until the control plane has handled all that the host has said before. */
export class Echoes {
  private readonly waiting = new Map<string, () => void>();
  private asked = 0;

  /** Resolves with the acknowledgement of a message that changes nothing, or when the stream has ended. */
  ask(say: (message: Record<string, unknown>) => void): Promise<void> {
    // The control plane acknowledges also answers to commands that it does not know.
    const commandId = `echo ${++this.asked}`;
    return new Promise((resolve) => {
      this.waiting.set(commandId, resolve);
      say({ commandResult: { commandId, outcome: 'COMMAND_OUTCOME_DONE' } });
    });
  }

  /** Tells whether this acknowledgement is an echo. */
  hear(commandId: string): boolean {
    this.waiting.get(commandId)?.();
    return this.waiting.delete(commandId);
  }

  /** The stream has ended: nobody answers any more. */
  end(): void {
    for (const resolve of this.waiting.values()) resolve();
    this.waiting.clear();
  }
}
