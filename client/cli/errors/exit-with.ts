/** Ends the program with the exit code of another one, which has said itself what is wrong. */
export class ExitWith extends Error {
  override readonly name = 'ExitWith';

  constructor(readonly exitCode: number) {
    super(`ends with ${exitCode}`);
  }
}
