import { createHash, randomUUID } from 'node:crypto';
import {
  CLIENT_CAPABILITIES_META_KEY,
  createRequestStateCodec,
  inputRequired,
  inputResponse,
  type CallToolResult,
  type ClientCapabilities,
  type InputRequiredResult,
  type McpServer,
  type RequestStateCodec,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { refusal } from './answers.js';

/** What a person agrees to before something costs or is destroyed. */
export interface Terms {
  tool: string;
  /** What the person reads: what will be done, and what it costs or destroys. */
  message: string;
  /** All that matters of it: an agreement holds only for the same. */
  subject: unknown;
  /** For clients that cannot ask: the argument that says it, what it was given, and what it must be. */
  argument: { name: string; given: string | number | undefined; expected: string | number };
  /** By this key what is agreed to happens once; made if absent. */
  idempotencyKey?: string | undefined;
}

/** Go on with the key, or answer with the result. */
export type Outcome =
  | { goOn: true; idempotencyKey: string }
  | { goOn: false; result: CallToolResult | InputRequiredResult };

interface Asked {
  digest: string;
  idempotencyKey: string;
}

const TEN_MINUTES_S = 600;
const QUESTION = 'confirm';

/**
 * Asks a person, through the client, before something costs or is destroyed. A client that cannot ask must give what its model was
 * shown, the price or the label, as an argument. What was agreed to travels to the client and back, signed and bound to the caller.
 */
export class Confirmation {
  readonly codec: RequestStateCodec<Asked>;

  /** `key`: 32 random bytes, the same for all servers that answer one client. */
  constructor(key: Uint8Array) {
    this.codec = createRequestStateCodec<Asked>({ key, ttlSeconds: TEN_MINUTES_S, bind: callerOf });
  }

  async ask(server: McpServer, context: ServerContext, terms: Terms): Promise<Outcome> {
    const { argument, idempotencyKey = randomUUID() } = terms;
    if (!canAsk(server, context))
      return argument.given === argument.expected
        ? { goOn: true, idempotencyKey }
        : { goOn: false, result: unconfirmed(terms) };
    const said = inputResponse(context.mcpReq.inputResponses, QUESTION);
    if (said.kind === 'elicit' && said.action !== 'accept') return { goOn: false, result: refusedBy(said.action) };
    const asked = context.mcpReq.requestState<Asked>();
    const digest = digestOf(terms);
    if (said.kind === 'elicit' && asked?.digest === digest) return { goOn: true, idempotencyKey: asked.idempotencyKey };
    const requestState = await this.codec.mint({ digest, idempotencyKey }, context);
    return { goOn: false, result: inputRequired({ inputRequests: { [QUESTION]: questionOf(terms) }, requestState }) };
  }
}

function questionOf({ message }: Terms) {
  return inputRequired.elicit({ mode: 'form', message, requestedSchema: { type: 'object', properties: {} } });
}

function digestOf({ tool, subject, argument }: Terms): string {
  return createHash('sha256')
    .update(JSON.stringify([tool, subject, argument.expected]))
    .digest('base64url');
}

function callerOf({ http }: ServerContext): string {
  return http?.authInfo?.clientId ?? '';
}

/** Tells whether the client shows forms to a person. One that declares elicitation without saying which kinds, shows forms. */
function canAsk(server: McpServer, { mcpReq }: ServerContext): boolean {
  const envelope = mcpReq.envelope as Record<string, ClientCapabilities | undefined> | undefined;
  const declared = envelope?.[CLIENT_CAPABILITIES_META_KEY];
  // oxlint-disable-next-line typescript/no-deprecated -- clients of 2025 say it only when they connect
  const { elicitation } = declared ?? server.server.getClientCapabilities() ?? {};
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
}

function unconfirmed({ message, argument: { name, given, expected } }: Terms): CallToolResult {
  const what = given === undefined ? `${name} is missing` : `${name} is not the present one`;
  return refusal('CONFIRMATION_REQUIRED', `${message} Nothing was done: ${what}.`, {
    [name]: expected,
    lifted_by: `Tell the person what it costs or destroys. If they agree, call the tool again with \`${name}\`.`,
  });
}

function refusedBy(action: 'decline' | 'cancel'): CallToolResult {
  return action === 'decline'
    ? refusal('DECLINED', 'The person has declined. Nothing was done.', {
        lifted_by: 'Ask the person what they want instead.',
      })
    : refusal('CANCELLED', 'The person has closed the question without an answer. Nothing was done.', {
        lifted_by: 'Ask the person whether to try again.',
      });
}
