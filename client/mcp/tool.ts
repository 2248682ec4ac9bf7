import type {
  CallToolResult,
  InputRequiredResult,
  McpServer,
  ServerContext,
  StandardSchemaWithJSON,
} from '@modelcontextprotocol/server';
import type { Gpurent } from '../api/index.js';
import { failure, refusal } from './answers.js';
import type { Outcome, Terms } from './confirm.js';
import type { RunCommand } from './ssh.js';

/** What the tools of a server share. */
export interface Toolbox {
  server: McpServer;
  gpurent: Gpurent;
  /** Asks a person; see Confirmation. */
  ask: (context: ServerContext, terms: Terms) => Promise<Outcome>;
  /** Runs a command on an instance; undefined: this server does not. */
  runCommand: RunCommand | undefined;
  onFault: (error: unknown) => void;
}

type Result = CallToolResult | InputRequiredResult;

/** What a tool does to the world, for the client's own rules. */
const HINTS = {
  /** Changes nothing. */
  reads: { readOnlyHint: true, openWorldHint: false },
  /** Adds something, or goes on with it. */
  adds: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  /** Ends or destroys something. */
  ends: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  /** Runs what the caller likes. */
  runs: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
} as const;

export interface ToolSpec<Input extends StandardSchemaWithJSON> {
  name: string;
  title: string;
  description: string;
  does: keyof typeof HINTS;
  input: Input;
  run: (given: StandardSchemaWithJSON.InferOutput<Input>, context: ServerContext) => Promise<Result>;
}

/** Adds a tool. Errors of the API become answers that say what lifts them; any other error is a fault, and shows nothing of itself. */
export function addTool<Input extends StandardSchemaWithJSON>(
  { server, onFault }: Toolbox,
  { name, title, description, does, input, run }: ToolSpec<Input>,
): void {
  const config = { title, description, inputSchema: input, annotations: { title, ...HINTS[does] } };
  const answered = async (
    given: StandardSchemaWithJSON.InferOutput<Input>,
    context: ServerContext,
  ): Promise<Result> => {
    try {
      return await run(given, context);
    } catch (error) {
      const known = failure(error);
      if (!known) onFault(error);
      return known ?? refusal('INTERNAL', 'an internal error occurred');
    }
  };
  server.registerTool(name, config, answered as never);
}
