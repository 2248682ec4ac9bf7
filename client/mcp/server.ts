import { McpServer } from '@modelcontextprotocol/server';
import type { Gpurent } from '../api/index.js';
import { Confirmation } from './confirm.js';
import { addResources } from './resources.js';
import type { RunCommand } from './ssh.js';
import type { Toolbox } from './tool.js';
import { addCostTool } from './tools/cost.js';
import { addDeployTools } from './tools/deploy.js';
import { addInstanceTools } from './tools/instances.js';
import { addMarketTools } from './tools/market.js';
import { addCommandTool } from './tools/run-command.js';
import { addWatchTools } from './tools/watch.js';
import { NOTICE } from './untrusted.js';

export type { RunCommand } from './ssh.js';

export interface McpOptions {
  /** The version of gpurent. */
  version: string;
  /** 32 random bytes, the same for all servers that can answer one client: what people were asked is signed with it. */
  signingKey: Uint8Array;
  /** Runs commands on instances by SSH; only on the caller's own machine. */
  runCommand?: RunCommand;
  /** Hears of errors that are faults of this program. */
  onFault?: (error: unknown) => void;
}

const INSTRUCTIONS = `gpurent rents GPU machines by the second. Amounts that end in _micro are in millionths of a dollar.
To rent: find_offers, list_templates, estimate, then deploy; call show_instance until its status is running.
Running instances cost money until they are stopped or destroyed; a stopped one costs for its disk until it is destroyed.
Always tell the person the price before you deploy or start, and never destroy what they have not named.
${NOTICE}`;

/** How long a client can take to ask a person. */
const ASKING_MS = 300_000;

/** Returns a server for one client that has the rights of the credential of `gpurent`. It is not connected yet. */
export function createMcpServer(
  gpurent: Gpurent,
  { version, signingKey, runCommand, onFault = () => undefined }: McpOptions,
): McpServer {
  const confirmation = new Confirmation(signingKey);
  const server = new McpServer(
    { name: 'gpurent', title: 'gpurent', version },
    {
      instructions: INSTRUCTIONS,
      requestState: { verify: (state, context) => confirmation.codec.verify(state, context) },
      inputRequired: { maxRounds: 3, roundTimeoutMs: ASKING_MS },
    },
  );
  const toolbox: Toolbox = {
    server,
    gpurent,
    runCommand,
    onFault,
    ask: (context, terms) => confirmation.ask(server, context, terms),
  };
  addMarketTools(toolbox);
  addDeployTools(toolbox);
  addInstanceTools(toolbox);
  addWatchTools(toolbox);
  addCostTool(toolbox);
  addCommandTool(toolbox);
  addResources(toolbox);
  return server;
}
