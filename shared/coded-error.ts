/** An expected failure: a stable code for programs and one sentence for people. Any other error is a bug. */
export class CodedError<Code extends string = string> extends Error {
  constructor(
    readonly code: Code,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** A wrong set-up: the program prints only the message and exits. */
export class SetupError extends CodedError<'SETUP'> {
  constructor(message: string, options?: ErrorOptions) {
    super('SETUP', message, options);
  }
}

/** Returns the message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
