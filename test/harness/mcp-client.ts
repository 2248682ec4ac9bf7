import { Client, StreamableHTTPClientTransport, type CallToolResult } from '@modelcontextprotocol/client';

/** How a person answers a question of a tool. */
export type Answers = (question: string) => 'accept' | 'decline' | 'cancel' | Promise<'accept' | 'decline' | 'cancel'>;

/** The protocol of 2025, with sessions, and that of 2026, without. */
export type Era = 'legacy' | 'auto';

export interface McpClientOptions {
  url: string;
  secret: string;
  era?: Era;
  /** Absent: the client cannot ask anybody. */
  answers?: Answers;
  headers?: Record<string, string>;
}

/** What a tool has answered, as far as tests look at it. */
export interface ToolAnswer {
  isError: boolean;
  /** The structured answer. */
  data: Record<string, unknown>;
  text: string;
}

/** A client of /mcp, with the library that real clients use. */
export class TestMcpClient {
  private constructor(
    readonly client: Client,
    readonly transport: StreamableHTTPClientTransport,
    /** What people were asked. */
    readonly questions: readonly string[],
  ) {}

  static async connect({
    url,
    secret,
    era = 'legacy',
    answers,
    headers = {},
  }: McpClientOptions): Promise<TestMcpClient> {
    const client = clientOf(era, answers !== undefined);
    const questions: string[] = [];
    if (answers)
      client.setRequestHandler('elicitation/create', async ({ params }) => {
        questions.push(params.message);
        const action = await answers(params.message);
        return action === 'accept' ? { action, content: {} } : { action };
      });
    const transport = new StreamableHTTPClientTransport(new URL('/mcp', url), {
      requestInit: { headers: { Authorization: `Bearer ${secret}`, ...headers } },
    });
    await client.connect(transport);
    return new TestMcpClient(client, transport, questions);
  }

  get sessionId(): string {
    return this.transport.sessionId ?? '';
  }

  async call(name: string, given: Record<string, unknown> = {}): Promise<ToolAnswer> {
    return toolAnswer(await this.client.callTool({ name, arguments: given }));
  }

  close(): Promise<void> {
    return this.client.close();
  }
}

export function clientOf(era: Era, canAsk: boolean): Client {
  const capabilities = canAsk ? { elicitation: { form: {} } } : {};
  return new Client({ name: 'test', version: '1' }, { capabilities, versionNegotiation: { mode: era } });
}

export function toolAnswer({ isError = false, structuredContent, content }: CallToolResult): ToolAnswer {
  const [first] = content;
  return {
    isError,
    data: (structuredContent ?? {}) as Record<string, unknown>,
    text: first?.type === 'text' ? first.text : '',
  };
}
