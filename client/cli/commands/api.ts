import { readFileSync } from 'node:fs';
import { Argument, InvalidArgumentError } from 'commander';
import { usageError } from '../errors/cli-error.js';
import type { Define } from '../invocation/define.js';
import type { Invocation } from '../invocation/invocation.js';
import { jsonText, plain } from '../terminal/plain-text.js';
import { readAll } from './standard-input.js';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
type Method = (typeof METHODS)[number];

/** The calls of the client take every path at run time; only their types name those of this release. */
type AnyCall = (
  path: string,
  init: { parseAs: 'text'; body?: unknown; headers?: Record<string, string> },
) => Promise<string | undefined>;

interface Options {
  data?: string;
  input?: string;
}

export const define: Define = (command, invocation) => {
  command
    .addArgument(new Argument('<method>', METHODS.join(', ')).argParser(methodOf))
    .argument('<path>', 'as /v1/instances?include_destroyed=true')
    .option('--data <json>', 'the body; secrets belong into --input')
    .option('--input <file>', 'a file with the body; -: standard input')
    .action(async (method: Method, path: string, options: Options) => {
      if (!/^\/[^\s{}]*$/.test(path)) throw usageError(`"${path}" is not a path`, 'Give it like /v1/instances.');
      const body = await bodyOf(invocation, options);
      const call = invocation.gpurent()[method.toLowerCase() as Lowercase<Method>] as unknown as AnyCall;
      const answer = await call(path, { parseAs: 'text', ...(body === undefined ? {} : { body }) });
      for (const line of shown(answer)) invocation.terminal.stdout.write(`${line}\n`);
    });
};

function methodOf(text: string): Method {
  const method = METHODS.find((each) => each === text.toUpperCase());
  if (!method) throw new InvalidArgumentError(`Give one of ${METHODS.join(', ')}.`);
  return method;
}

async function bodyOf({ terminal }: Invocation, { data, input }: Options): Promise<unknown> {
  if (data === undefined && input === undefined) return undefined;
  const text = data ?? (input === '-' || input === undefined ? await readAll(terminal) : readFileSync(input, 'utf8'));
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw usageError(`the body is not JSON: ${(error as Error).message.replace(/, ".*$/s, '')}`);
  }
}

function shown(answer: string | undefined): string[] {
  // Some answers that have nothing to say have the body null.
  if (!answer || answer.trim() === 'null') return [];
  try {
    return [jsonText(JSON.parse(answer))];
  } catch {
    return answer.trimEnd().split('\n').map(plain);
  }
}
