import type { Mutant } from './mutant.js';

/** Of the server for AI agents: who may come in, what they are asked, and what strangers can make them read. */
export const MCP: readonly Mutant[] = [
  {
    name: 'session-of-another-key',
    file: 'control-plane/http/mcp/sessions.ts',
    before: '    if (held?.session.keyId !== keyId)',
    after: '    if (!held)',
    tests: ['test/api/mcp-sessions.test.ts'],
  },
  {
    name: 'session-outlives-its-key',
    file: 'control-plane/http/mcp/sessions.ts',
    before: ' && !session.isStillAdmitted())',
    after: ' && changed.size === 0)',
    tests: ['test/api/mcp-sessions.test.ts'],
  },
  {
    name: 'session-never-idle',
    file: 'control-plane/http/mcp/sessions.ts',
    before: 'Math.min(IDLE_MS, held.endsAt',
    after: 'Math.min(AGE_MS, held.endsAt',
    tests: ['test/api/mcp-sessions.test.ts'],
  },
  {
    name: 'page-of-another-origin-among-agents',
    file: 'control-plane/http/mcp/check-origin.ts',
    before: 'origin !== undefined && origin !== publicUrl',
    after: "origin === 'https://nowhere.example' && origin !== publicUrl",
    tests: ['test/api/mcp-sessions.test.ts'],
  },
  {
    name: 'person-among-agents',
    file: 'control-plane/http/mcp/routes.ts',
    before: "  throw new Refusal('TOKEN_INVALID', 'this address takes API keys only",
    after:
      "  if (caller.kind === 'session') return caller.userId;\n  throw new Refusal('TOKEN_INVALID', 'this address takes API keys only",
    tests: ['test/api/mcp-sessions.test.ts'],
  },
  {
    name: 'call-outlives-its-client',
    file: 'control-plane/http/mcp/endpoint.ts',
    before: '      if (raw.writableFinished) return;\n',
    after: '      if (raw.destroyed) return;\n',
    tests: ['test/api/mcp-sessions.test.ts'],
  },
  {
    name: 'old-price-agreed-to',
    file: 'client/mcp/confirm.ts',
    before: "said.kind === 'elicit' && asked?.digest === digest",
    after: "said.kind === 'elicit' && asked",
    tests: ['test/api/mcp.test.ts'],
  },
  {
    name: 'deploy-without-the-price',
    file: 'client/mcp/confirm.ts',
    before: 'argument.given === argument.expected\n',
    after: 'argument.given !== undefined\n',
    tests: ['test/api/mcp.test.ts'],
  },
  {
    name: 'forged-bracket',
    file: 'client/mcp/untrusted.ts',
    before: ".replace(BRACKETS, '|')",
    after: ".replace(BRACKETS, '$&')",
    tests: ['test/unit/mcp.test.ts', 'test/api/mcp.test.ts'],
  },
  {
    name: 'injected-request-has-a-connection',
    file: 'control-plane/http/answers/early-answers.ts',
    before: ' || !(raw instanceof IncomingMessage)',
    after: '',
    tests: ['test/api/mcp-sessions.test.ts'],
  },
];
