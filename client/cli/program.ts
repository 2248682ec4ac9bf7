import { Command } from 'commander';
import type { GlobalOptions } from './invocation/invocation.js';
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
    .option('--cacert <file>', 'trust this authority too, in PEM; otherwise those of the system and of Node')
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
  const loadAll = async () => {
    await Promise.all([...loaders.values()].map((load) => load()));
  };
  const invocation = once(async () => {
    const module = await import('./invocation/invocation.js');
    return new module.Invocation(terminal, () => program.opts<GlobalOptions>(), loadAll);
  });
  for (const [heading, commands] of Object.entries(COMMANDS)) {
    program.commandsGroup(heading);
    for (const [name, { summary, load }] of Object.entries(commands)) {
      const command = program.command(name).description(summary);
      const prepare = once(async () => (await load()).define(command, await invocation()));
      loaders.set(command, prepare);
    }
  }
  program.command('help [command...]').description('what a command does, with its options').action(helpOf(program));
  program.hook('preSubcommand', async (_program, command) => loaders.get(command)?.());
  return { program, loadAll };
}

const helpOf = (program: Command) => async (command: string[]) => {
  await program.parseAsync([...command, '--help'], { from: 'user' });
};

function once<Value>(load: () => Promise<Value>): () => Promise<Value> {
  let loading: Promise<Value> | undefined;
  return () => (loading ??= load());
}
