import { request, type ClientRequest, type IncomingMessage } from 'node:http';
import { recordEvent } from '../../control-plane/services/events/record.js';
import { eventually } from '../../scripts/eventually.js';
import type { TestControlPlane } from './control-plane.js';

export interface ReceivedEvent {
  id: string;
  event: string;
  data: { specversion: string; id: string; type: string; subject: string; data: Record<string, unknown> } & Record<
    string,
    unknown
  >;
}

/** A client of server-sent events that keeps what it has received. */
export class EventReader {
  readonly events: ReceivedEvent[] = [];
  readonly comments: string[] = [];
  /** The answer, if it is no stream. */
  refusal: { status: number; code: string; oldest_id?: string | null; limit?: number } | undefined;
  headers: IncomingMessage['headers'] = {};
  lastId: string | undefined;
  retryMs: number | undefined;
  isOpen = false;
  isOver = false;
  private text = '';
  private readonly sent: ClientRequest;

  constructor(url: string, token: string | undefined, headers: Record<string, string> = {}) {
    const credential: Record<string, string> = token === undefined ? {} : { Authorization: `Bearer ${token}` };
    this.sent = request(url, { agent: false, headers: { Accept: 'text/event-stream', ...credential, ...headers } });
    this.sent.on('error', () => (this.isOver = true));
    this.sent.on('response', (answer) => this.receive(answer));
    this.sent.end();
  }

  /** Opens a stream and waits until it has begun. Throws if it was refused. */
  static async open(...given: ConstructorParameters<typeof EventReader>): Promise<EventReader> {
    const reader = new EventReader(...given);
    await eventually('the stream to begin', () => reader.lastId !== undefined || reader.isOver);
    if (reader.refusal) throw new Error(`refused: ${reader.refusal.code}`);
    return reader;
  }

  /** Asks for a stream that is refused, and returns the refusal. */
  static async refused(...given: ConstructorParameters<typeof EventReader>): Promise<EventReader['refusal']> {
    const reader = new EventReader(...given);
    await eventually('the refusal', () => reader.isOver || reader.isOpen);
    reader.kill();
    return reader.refusal;
  }

  get ids(): string[] {
    return this.events.map(({ id }) => id);
  }

  /** Waits until it has received this many events. */
  async has(count: number, timeoutMs?: number): Promise<ReceivedEvent[]> {
    await eventually(`${count} events`, () => this.events.length >= count || this.isOver, timeoutMs);
    return this.events;
  }

  async ended(): Promise<string | undefined> {
    await eventually('the end of the stream', () => this.isOver);
    return this.comments.at(-1);
  }

  /** Cuts the connection. */
  kill(): void {
    this.sent.destroy();
  }

  private receive(answer: IncomingMessage): void {
    this.headers = answer.headers;
    answer.setEncoding('utf8');
    answer.on('error', () => undefined);
    answer.on('close', () => (this.isOver = true));
    if (answer.statusCode !== 200) {
      let text = '';
      answer.on('data', (part: string) => (text += part));
      answer.on('end', () => {
        this.refusal = { status: answer.statusCode ?? 0, ...(JSON.parse(text) as { code: string }) };
      });
      return;
    }
    this.isOpen = true;
    answer.on('data', (part: string) => this.take(part));
  }

  private take(part: string): void {
    this.text += part;
    const blocks = this.text.split('\n\n');
    this.text = blocks.pop() ?? '';
    for (const block of blocks) this.read(block);
  }

  private read(block: string): void {
    const fields: Record<string, string> = {};
    for (const line of block.split('\n')) {
      const [, name = '', value = ''] = /^([^:]*): ?(.*)$/.exec(line) ?? [];
      if (name === '') this.comments.push(value);
      else fields[name] = value;
    }
    if (fields['retry'] !== undefined) this.retryMs = Number(fields['retry']);
    this.lastId = fields['id'] ?? this.lastId;
    if (fields['data'] === undefined) return;
    this.events.push({
      id: this.lastId ?? '',
      event: fields['event'] ?? 'message',
      data: JSON.parse(fields['data']) as ReceivedEvent['data'],
    });
  }
}

/** Records events in batches, numbered from `first` by their amount. */
export function recordCredits(test: TestControlPlane, stream: string, count: number, first = 1): void {
  for (let done = 0; done < count; done += 1_000) {
    test.core.platform.store.transact((tx) => {
      for (let index = done; index < Math.min(done + 1_000, count); index++) {
        const data = { amount_micro: first + index, balance_micro: 0, reason: null };
        recordEvent(tx, stream, 'billing.credited', `orgs/${stream}`, data);
      }
    });
  }
}

/** The amounts of {@link recordCredits}. */
export function amountsOf(events: readonly { data: { data: Record<string, unknown> } }[]): number[] {
  return events.map(({ data }) => data.data['amount_micro'] as number);
}
