import { Command } from 'commander';
import type { Define } from './invocation/define.js';
import { Invocation, type GlobalOptions } from './invocation/invocation.js';
import { VERSION } from './invocation/version.js';
import { COMMANDS } from './registry.js';
import type { Terminal } from './terminal/terminal.js';

const EPILOGUE = `
Three commands to a shell:
  gpurent login https://gpurent.example.com
  gpurent deploy
  gpurent ssh INSTANCE

INSTANCE is an id, its beginning, or a label. GPURENT_URL, GPURENT_TOKEN and GPURENT_ORG come before the context.`;

/**
 * Returns the program. The module of a command is loaded when the command is used, so that the program itself starts fast;
 * `loadAll` loads every one.
 */
export function createProgram(terminal: Terminal): { program: Command; loadAll: () => Promise<void> } {
  const program = new Command('gpurent')
    .description('Rents GPUs by the second.')
    .version(VERSION)
    .option('--json', "print the API's own objects as JSON")
    .option('--explain', 'show each request as a curl command on stderr')
    .option('--context <name>', 'the context to use; otherwise the current one')
    .option('--org <id>', 'the organization for which a session acts')
    .addHelpText('after', EPILOGUE)
    .showHelpAfterError('See gpurent help.')
    .helpCommand(false)
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => terminal.stdout.write(text),
      writeErr: (text) => terminal.stderr.write(text),
      getOutHelpWidth: () => terminal.columns ?? 100,
      getErrHelpWidth: () => terminal.columns ?? 100,
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    });
  const loaders = new Map<Command, () => Promise<void>>();
  const loadAll = async () => void (await Promise.all([...loaders.values()].map((load) => load())));
  const invocation = new Invocation(terminal, () => program.opts<GlobalOptions>(), loadAll);
  for (const [heading, commands] of Object.entries(COMMANDS)) {
    program.commandsGroup(heading);
    for (const [name, { summary, load }] of Object.entries(commands)) {
      const command = program.command(name).description(summary);
      loaders.set(
        command,
        once(async () => define(await load(), command, invocation)),
      );
    }
  }
  program.command('help [command...]').description('what a command does, with its options').action(helpOf(program));
  program.hook('preSubcommand', async (_program, command) => loaders.get(command)?.());
  return { program, loadAll };
}

const define = (module: { define: Define }, command: Command, invocation: Invocation): void =>
  module.define(command, invocation);

const helpOf = (program: Command) => async (command: string[]) =>
  void (await program.parseAsync([...command, '--help'], { from: 'user' }));

function once(load: () => Promise<void>): () => Promise<void> {
  let loading: Promise<void> | undefined;
  return () => (loading ??= load());
}
