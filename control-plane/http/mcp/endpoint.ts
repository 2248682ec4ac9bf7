import { randomBytes } from 'node:crypto';
import {
  createMcpHandler,
  isInitializeRequest,
  isJSONRPCRequest,
  isLegacyRequest,
  WebStandardStreamableHTTPServerTransport,
  type AuthInfo,
  type McpServer,
} from '@modelcontextprotocol/server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { createMcpServer } from '../../../client/mcp/index.js';
import { VERSION } from '../../../shared/version.js';
import { Refusal } from '../../domain/refusal.js';
import { identifyCaller, onCredentialChange } from '../../services/identity/sessions/authenticate.js';
import { holderOf } from '../../services/organizations/holders.js';
import { hashToken } from '../../services/secrets/tokens.js';
import type { App } from '../../services/parts/parts.js';
import { clientAddress, clientNetwork } from '../access/client.js';
import { callerOf, tokenOf } from '../access/policy.js';
import { connectWithin, NOWHERE, type Sender } from './inject.js';
import { McpSessions, type Session } from './sessions.js';

/** The headers of MCP; no others reach its library, above all no credential. */
const PASSED = ['accept', 'content-type', 'mcp-method', 'mcp-name', 'mcp-protocol-version', 'mcp-session-id'];
const SESSION_HEADER = 'mcp-session-id';
const SIGNING_KEY_BYTES = 32;
const SESSION_ID_BYTES = 32;

/**
 * Answers MCP messages of API keys. Clients of the protocol of 2026 keep no session: each request stands for itself, and what a person
 * was asked comes back with the answer, signed. Earlier clients have sessions.
 */
export class McpEndpoint {
  readonly sessions: McpSessions;
  private readonly changed = new Set<string>();
  private readonly signingKey = randomBytes(SIGNING_KEY_BYTES);
  private readonly stateless;

  constructor(
    private readonly app: FastifyInstance,
    private readonly platform: App,
  ) {
    this.sessions = new McpSessions(platform.clock);
    this.stateless = createMcpHandler(({ authInfo }) => this.serverFor(authInfo?.extra?.['sender'] as Sender), {
      legacy: 'reject',
      // Nothing here tells clients of changes.
      maxSubscriptions: 0,
    });
    onCredentialChange(platform, (key) => this.noteChange(key));
  }

  /** Answers a message of an API key. Refuses with SESSION_NOT_FOUND, and with UNAVAILABLE at a limit. */
  async answer(request: FastifyRequest, reply: FastifyReply, keyId: string): Promise<Response> {
    const { body } = request;
    const passed = requestOf(request);
    const { token, address } = senderOf(request);
    if (!(await isLegacyRequest(passed, body)))
      return this.stateless.fetch(passed, { parsedBody: body, authInfo: authInfoOf(keyId, { token, address }) });
    const session = isInitializeRequest(body) ? await this.open(request, keyId) : this.find(request, keyId);
    session.address = address();
    if (isJSONRPCRequest(body)) this.countCall(session, reply, body.id);
    return session.transport.handleRequest(passed, { parsedBody: body, authInfo: authInfoOf(keyId) });
  }

  /** Ends a session. Refuses with SESSION_NOT_FOUND. */
  end(request: FastifyRequest, keyId: string): void {
    this.sessions.end(this.find(request, keyId).id);
  }

  /** Ends every session, and every answer that is under way. */
  async close(): Promise<void> {
    this.sessions.endAll();
    await this.stateless.close();
  }

  private find({ headers }: FastifyRequest, keyId: string): Session {
    const id = headers[SESSION_HEADER];
    return this.sessions.find(typeof id === 'string' ? id : '', keyId);
  }

  private async open(request: FastifyRequest, keyId: string): Promise<Session> {
    const { platform } = this;
    const { token, address } = senderOf(request);
    const caller = callerOf(request);
    const creatorId = caller.kind === 'api_key' ? caller.creatorId : caller.userId;
    const id = platform.ids.hex(SESSION_ID_BYTES);
    const session: Session = {
      id,
      keyId,
      address: address(),
      holder: platform.store.transact((tx) => holderOf(tx, caller.organizationId, clientNetwork(request))),
      changedBy: [hashToken(token), creatorId, caller.organizationId],
      transport: new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => id }),
      server: this.serverFor({
        token,
        address: () => session.address,
      }),
      isStillAdmitted: () => isAlive(platform, token, session.address),
    };
    this.sessions.add(session);
    await session.server.connect(session.transport);
    return session;
  }

  /** Counts a call until its answer has gone out. If the client goes away before, nobody waits for the answer, and the call is ended. */
  private countCall(session: Session, { raw }: FastifyReply, requestId: string | number): void {
    const end = this.sessions.beginCall(session);
    raw.once('close', () => {
      end();
      if (raw.writableFinished) return;
      session.transport.onmessage?.({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } });
    });
  }

  /** Looks, once for all changes of this turn, whether sessions have to end. */
  private noteChange(key: string): void {
    if (this.sessions.count === 0) return;
    if (this.changed.size === 0)
      this.platform.defer(() => {
        const changed = new Set(this.changed);
        this.changed.clear();
        this.sessions.endRefused(changed);
      });
    this.changed.add(key);
  }

  private serverFor(sender: Sender): McpServer {
    const onFault = (error: unknown) => this.app.log.error({ err: error }, 'an MCP tool has failed');
    return createMcpServer(connectWithin(this.app, sender), { version: VERSION, signingKey: this.signingKey, onFault });
  }
}

function senderOf(request: FastifyRequest): Sender {
  const address = clientAddress(request);
  return { token: tokenOf(request) ?? '', address: () => address };
}

/** What the library hands through to a server: by whom it is asked, and with what. */
function authInfoOf(keyId: string, sender?: Sender): AuthInfo {
  return { token: '', clientId: keyId, scopes: [], ...(sender ? { extra: { sender } } : {}) };
}

/** Returns a request for the library. The body is passed beside it. */
function requestOf({ method, headers }: FastifyRequest): Request {
  const passed = PASSED.flatMap((name): [string, string][] => {
    const value = headers[name];
    return typeof value === 'string' ? [[name, value]] : [];
  });
  return new Request(NOWHERE, { method, headers: passed });
}

function isAlive(platform: App, token: string, address: string): boolean {
  try {
    return identifyCaller(platform, token, undefined, address).kind === 'api_key';
  } catch (error) {
    if (error instanceof Refusal) return false;
    throw error;
  }
}
