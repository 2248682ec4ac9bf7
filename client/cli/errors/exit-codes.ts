/** With what the program ends, so that a script need not read its words. The list in docs/cli.md is this one. */
export const EXIT = {
  ok: 0,
  /** A fault of the program or of the control plane. */
  internal: 1,
  /** The command line, or a value in it, is wrong. */
  usage: 2,
  /** The control plane has refused. */
  refused: 3,
  notFound: 4,
  /** The balance, a limit or a cap does not allow it. */
  noMoney: 5,
  /** The control plane was not reached, or cannot answer now: the same command can succeed later. */
  unreachable: 6,
  /** No credential, or one that has ended. */
  unauthorized: 7,
  /** What the command has waited for will not come: the instance is in `error`, or gone. */
  failed: 8,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
