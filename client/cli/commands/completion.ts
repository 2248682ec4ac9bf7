import { Argument, type Command } from 'commander';
import type { Define } from '../invocation/define.js';
import { bashCompletion, fishCompletion, zshCompletion, type Words } from '../completion/scripts.js';

const SCRIPTS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion };
type Shell = keyof typeof SCRIPTS;

export const define: Define = (command, invocation) => {
  command
    .addArgument(new Argument('<shell>', 'for which shell').choices(Object.keys(SCRIPTS)))
    .action(async (shell: Shell) => {
      await invocation.loadAll();
      invocation.terminal.stdout.write(SCRIPTS[shell](wordsOf(command.parent ?? command)));
    });
};

/** Returns what can follow each command: its subcommands and options. */
function wordsOf(program: Command): Words {
  const own = (command: Command) => command.options.flatMap(({ long }) => (long ? [long] : []));
  const everywhere = [...own(program), '--help'];
  const below = (command: Command, path: string): [string, string[]][] => [
    [
      path,
      [...command.commands.map((each) => each.name()), ...(command === program ? [] : own(command)), ...everywhere],
    ],
    ...command.commands.flatMap((each) => below(each, `${path} ${each.name()}`)),
  ];
  return new Map(below(program, program.name()));
}
