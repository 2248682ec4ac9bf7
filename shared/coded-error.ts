/** An expected failure: a stable code for programs, one sentence for people. Everything else is a bug. */
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

/** Wrong set-up: the program prints the message alone and exits. */
export class SetupError extends CodedError<'SETUP'> {
  constructor(message: string, options?: ErrorOptions) {
    super('SETUP', message, options);
  }
}

/** The message of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
