import { recordEvent } from '../../control-plane/services/events/record.js';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane, type Renter } from './control-plane.js';
import { WebhookReceiver, type Received } from './webhook-receiver.js';

export interface EndpointBody {
  id: string;
  enabled: boolean;
  disabled_reason: string | null;
  failing_since: string | null;
}

export interface DeliveryBody {
  id: string;
  event_id: string | null;
  type: string;
  state: string;
  attempts: number;
  next_attempt_at: string | null;
  last_status: number | null;
  last_error: string | null;
  last_answer: string | null;
}

const PATH = '/v1/webhook-endpoints';

/** The endpoints of one renter, and what happens to its organization. */
export class Hooks {
  constructor(
    readonly test: TestControlPlane,
    readonly renter: Renter,
  ) {}

  async create(url: string, fields: object = {}): Promise<{ id: string; secret: string }> {
    const made = await this.renter.api.post<{ endpoint: EndpointBody; secret: string }>(PATH, { url, ...fields });
    return { id: made.endpoint.id, secret: made.secret };
  }

  read(id: string): Promise<EndpointBody> {
    return this.renter.api.get(`${PATH}/${id}`);
  }

  async change(id: string, changes: object): Promise<EndpointBody> {
    return (await this.renter.api.request<EndpointBody>('PATCH', `${PATH}/${id}`, changes)).body;
  }

  /** The deliveries of an endpoint, the newest first. */
  async log(id: string, query = ''): Promise<DeliveryBody[]> {
    return (await this.renter.api.get<{ items: DeliveryBody[] }>(`${PATH}/${id}/deliveries${query}`)).items;
  }

  /** The only delivery of an endpoint once it is like this. */
  delivery(id: string, like: Partial<DeliveryBody>): Promise<DeliveryBody> {
    return eventually(`a delivery like ${JSON.stringify(like)}`, async () => {
      const found = await this.log(id);
      return found.find((one) => Object.entries(like).every(([name, value]) => one[name as never] === value));
    });
  }

  /** The id of the event with this number of the organization's stream. */
  async eventId(number: number): Promise<string> {
    const { last_id } = await this.renter.api.get<{ last_id: string }>('/v1/events?limit=1');
    return last_id.replace(/\d+$/, String(number));
  }

  post<T>(path: string, body?: unknown): Promise<T> {
    return this.renter.api.post<T>(path, body);
  }

  /** Records events of the organization. Their amounts count them from `first`. */
  happen(count = 1, first = 1): void {
    this.test.core.platform.store.transact((tx) => {
      for (let number = first; number < first + count; number++) {
        const data = { amount_micro: number, balance_micro: 0, reason: null };
        recordEvent(tx, this.renter.organizationId, 'billing.credited', 'billing', data);
      }
    });
  }
}

/** A control plane that can reach one receiver, and a renter. */
export class WebhookWorld {
  /** What the receiver's name resolves to, one answer for each question; the last one stays. */
  addresses: (string[] | Promise<string[]>)[] = [['127.0.0.1']];
  asked = 0;
  private idleTimers = 0;

  private constructor(
    readonly receiver: WebhookReceiver,
    public test: TestControlPlane,
    public hooks: Hooks,
  ) {}

  static async start(): Promise<WebhookWorld> {
    const receiver = await WebhookReceiver.start();
    const resolve = async () => world.addresses[Math.min(world.asked++, world.addresses.length - 1)] ?? [];
    // Other loopback addresses stand for those that are forbidden.
    const webhooks = { networks: ['127.0.0.1/32'], trusted: [receiver.certificate], resolve };
    const test = await TestControlPlane.start({ webhooks });
    const world: WebhookWorld = new WebhookWorld(receiver, test, new Hooks(test, await test.renter(0)));
    world.idleTimers = test.clock.waiting;
    return world;
  }

  async stop(): Promise<void> {
    await this.test.stop();
    await this.receiver.stop();
  }

  /** Returns what came to a path once there are so many messages. */
  received(count: number, path = '/hooks'): Promise<Received[]> {
    return eventually(`${count} messages`, () => this.receiver.at(path).length >= count && this.receiver.at(path));
  }

  /** The receiver answers everything with a status. */
  answering(status: number): void {
    this.receiver.answer = (response) => void response.writeHead(status).end();
  }

  /** Resolves when no attempt is under way, and none begins because another one has ended. */
  async quiet(): Promise<void> {
    let seen = 0;
    const isQuiet = () => (seen = this.test.clock.waiting > this.idleTimers ? 0 : seen + 1) === 3;
    await eventually('the end of all attempts', isQuiet);
  }
}
