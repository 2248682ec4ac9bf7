import type { ConfirmOptions, SelectOptions, TextOptions } from '@clack/prompts';
import { CliError } from '../errors/cli-error.js';
import { EXIT } from '../errors/exit-codes.js';
import type { Terminal } from '../terminal/terminal.js';

type Asked<Options> = Omit<Options, 'input' | 'output' | 'signal'>;

/** Lets a person choose. Throws a CliError if they press Ctrl-C. */
export const choose = <Value extends string | boolean>(
  terminal: Terminal,
  options: Asked<SelectOptions<Value>>,
): Promise<Value> => ask<Value>(terminal, async ({ select }, common) => select<Value>({ ...options, ...common }));

/** Lets a person type a text. */
export const type = (terminal: Terminal, options: Asked<TextOptions>): Promise<string> =>
  ask<string>(terminal, async ({ text }, common) => text({ ...options, ...common }));

/** Asks a person yes or no. */
export const agree = (terminal: Terminal, options: Asked<ConfirmOptions>): Promise<boolean> =>
  ask<boolean>(terminal, async ({ confirm }, common) => confirm({ ...options, ...common }));

type Prompts = typeof import('@clack/prompts');
type Common = Pick<ConfirmOptions, 'input' | 'output' | 'signal'>;

async function ask<Value>(
  { stdin, stderr, interrupted }: Terminal,
  prompt: (prompts: Prompts, common: Common) => Promise<Value | symbol>,
): Promise<Value> {
  const prompts = await import('@clack/prompts');
  const answer: Value | symbol = await prompt(prompts, { input: stdin, output: stderr, signal: interrupted });
  if (prompts.isCancel(answer)) throw new CliError(EXIT.interrupted, 'nothing was changed');
  return answer as Value;
}
