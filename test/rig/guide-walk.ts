import { RUN_GUIDES, commandsIn, namedBlocks } from '../harness/guide-blocks.js';
import type { SystemdMachine } from './systemd-machine.js';

/** Text of a guide, and what a reader puts in its place. */
export type Placeholders = Record<string, string>;

/** Stands for somebody who pastes commands of the guides into a shell of their own. */
export class Reader {
  private readonly variables = new Set<string>();
  private readonly state: string;

  /** `user` begins in `folder`, and puts the `usual` placeholders in wherever they stand. */
  constructor(
    private readonly machine: Pick<SystemdMachine, 'tell'>,
    name: string,
    private readonly usual: Placeholders = {},
    private readonly user = 'root',
    private readonly folder = '~',
  ) {
    this.state = `~/.shell-of-${name}`;
  }

  /**
   * Runs a command and returns what it printed. Variables, functions and the folder of earlier commands are there. Rejects with
   * all output when the command, or any part of a pipe, fails; curl fails at every answer that is an error.
   */
  async paste(command: string, placeholders: Placeholders = {}): Promise<string> {
    const filled = fill(command, placeholders, this.usual);
    for (const [, name = ''] of filled.matchAll(/^([A-Z_]+)=/gm)) this.variables.add(name);
    const keep = [...this.variables].map((name) => `declare -p ${name} 2>/dev/null || true`).join('; ');
    const script = `
      export LANG=C.UTF-8; curl() { command curl --fail-with-body --show-error --max-time 60 "$@"; }
      cd ${this.folder}; [ ! -e ${this.state} ] || . ${this.state}
      set -e -o pipefail
      ${filled}
      # Of "a && b" the shell goes on where a fails.
      [ $? = 0 ] || exit 1
      { declare -f; printf 'cd %q\\n' "$PWD"; ${keep === '' ? ':' : keep}; } >${this.state}`;
    const { ok, said, errors } = await this.machine.tell(script, this.user);
    if (!ok) throw new Error(`a guide's command fails:\n${filled}\n${said}\n${errors}`);
    return said;
  }
}

function fill(command: string, own: Placeholders, usual: Placeholders): string {
  let filled = command;
  for (const [text, value] of Object.entries({ ...usual, ...own })) filled = filled.replaceAll(text, () => value);
  const left = /"\.\.\."|\/\.\.\.|_\.\.\./.exec(filled);
  if (left) throw new Error(`nobody says what stands for ${left[0]} in: ${filled}`);
  return filled;
}

/** One block that is being pasted, command by command. */
export class OpenBlock {
  private next = 0;
  private last: [string, Placeholders] = ['', {}];
  private readonly commands: string[];

  constructor(
    private readonly reader: Reader,
    private readonly name: string,
    text: string,
    private readonly ended: () => void,
  ) {
    this.commands = commandsIn(text);
  }

  /** Pastes what is left up to the next command that has `text`, and says what that one printed. */
  async upTo(text: string, placeholders: Placeholders = {}): Promise<string> {
    const at = this.commands.findIndex((command, index) => index >= this.next && command.includes(text));
    if (at < 0) throw new Error(`${this.name} has no further command with: ${text}`);
    return this.pasteTo(at + 1, placeholders);
  }

  /** Pastes what is left; says what each command printed. */
  async rest(placeholders: Placeholders = {}): Promise<string> {
    return this.pasteTo(this.commands.length, placeholders);
  }

  /** Pastes the last command once more, as somebody does who waits. */
  again(): Promise<string> {
    return this.reader.paste(...this.last);
  }

  private async pasteTo(end: number, placeholders: Placeholders): Promise<string> {
    const unused = Object.keys(placeholders).filter(
      (text) => !this.commands.slice(this.next, end).some((command) => command.includes(text)),
    );
    if (unused.length > 0) throw new Error(`${this.name} no longer has: ${unused.join(', ')}`);
    let said = '';
    for (; this.next < end; this.next++) {
      this.last = [this.commands[this.next] ?? '', placeholders];
      said = await this.again();
    }
    if (end === this.commands.length) this.ended();
    return said;
  }
}

/** A walk through the guides, which remembers the blocks that were pasted to their end. */
export class GuideWalk {
  readonly walked = new Set<string>();
  private readonly blocks = new Map(
    RUN_GUIDES.flatMap((file) => namedBlocks(file)).map(({ name, text }) => [name, text]),
  );

  open(reader: Reader, name: string): OpenBlock {
    return new OpenBlock(reader, name, this.textOf(name), () => this.walked.add(name));
  }

  /** Pastes a whole block; says what its last command printed. */
  async follow(reader: Reader, name: string, placeholders: Placeholders = {}): Promise<string> {
    return this.open(reader, name).rest(placeholders);
  }

  /** The one command of a block that has `text`, to be pasted once more. */
  commandOf(name: string, text: string): string {
    const found = commandsIn(this.textOf(name)).find((command) => command.includes(text));
    if (found === undefined) throw new Error(`${name} has no command with: ${text}`);
    return found;
  }

  private textOf(name: string): string {
    const text = this.blocks.get(name);
    if (text === undefined) throw new Error(`there is no block ${name}`);
    return text;
  }
}
