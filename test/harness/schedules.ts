import {
  WEEKDAYS,
  type Occurrence,
  type ScheduleAction,
  type ScheduleEntry,
} from '../../control-plane/domain/instances/schedule.js';
import type { Row } from '../../control-plane/store/schema.js';
import { query } from '../../control-plane/store/sql.js';
import type { InstanceBody } from './api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane, statusIs, type Renter } from './control-plane.js';
import type { FakeAgent } from './fake-agent.js';
import type { WireCommand } from './wire.js';

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
export const CREDIT_MICRO = 100_000_000_000;

export interface ScheduleBody {
  time_zone: string | null;
  entries: ScheduleEntry[];
  next: (Omit<Occurrence, 'at'> & { at: string }) | null;
}

export interface Rented {
  agent: FakeAgent;
  id: string;
  offerId: string;
}

/** A schedule in UTC. */
export const utc = (...entries: ScheduleEntry[]) => ({ time_zone: 'UTC', entries });

/** A control plane, a renter with much credit, and time that passes while hosts are heard. */
export class ScheduleMarket {
  private constructor(
    readonly test: TestControlPlane,
    public renter: Renter,
    readonly templateId: string,
  ) {}

  /** One whose first minutes, in which it waits for its hosts, are over. */
  static async start(): Promise<ScheduleMarket> {
    const test = await TestControlPlane.start();
    const market = new ScheduleMarket(test, await test.renter(CREDIT_MICRO), await test.template());
    test.advance(5 * MINUTE_MS);
    return market;
  }

  /** An organization has 25 instances at most. */
  async freshRenter(): Promise<void> {
    this.renter = await this.test.renter(CREDIT_MICRO);
  }

  read(id: string, api = this.renter.api): Promise<InstanceBody> {
    return api.get<InstanceBody>(`/v1/instances/${id}`);
  }

  schedule(id: string): Promise<ScheduleBody> {
    return this.renter.api.get<ScheduleBody>(`/v1/instances/${id}/schedule`);
  }

  put(id: string, body: unknown, api = this.renter.api) {
    return api.request<ScheduleBody>('PUT', `/v1/instances/${id}/schedule`, body);
  }

  drop(id: string) {
    return this.renter.api.request('DELETE', `/v1/instances/${id}/schedule`);
  }

  /** The kinds of the events of an instance, the newest first. */
  async kinds(id: string): Promise<string[]> {
    const { items } = await this.renter.api.get<{ items: { kind: string }[] }>(`/v1/instances/${id}/events`);
    return items.map(({ kind }) => kind);
  }

  rowOf(id: string): Row<'instance_schedules'> | undefined {
    const row = query.selectFrom('instance_schedules').selectAll().where('instance_id', '=', id);
    return this.test.core.platform.store.transact((tx) => tx.get(row));
  }

  changeRow(id: string, changes: Partial<Row<'instance_schedules'>>): void {
    const row = query.updateTable('instance_schedules').set(changes).where('instance_id', '=', id);
    this.test.core.platform.store.transact((tx) => tx.run(row));
  }

  /** The minute that begins so many minutes after the present one. */
  minuteIn(minutes: number): number {
    return (Math.floor(this.test.clock.now() / MINUTE_MS) + minutes) * MINUTE_MS;
  }

  isoIn(minutes: number): string {
    return new Date(this.minuteIn(minutes)).toISOString();
  }

  /** An entry for the minute that begins so many minutes after the present one, in UTC. */
  entry(action: ScheduleAction, minutes: number): ScheduleEntry {
    const at = this.isoIn(minutes);
    const day = WEEKDAYS[(new Date(at).getUTCDay() + 6) % 7] ?? 'monday';
    return { action, days: [day], at: at.slice(11, 16) };
  }

  isConnected({ hostId }: FakeAgent): boolean {
    return this.test.core.platform.connections.isConnected(hostId);
  }

  /** Time passes, the hosts are heard, and every worker runs once. */
  async passTo(at: number, ...agents: FakeAgent[]): Promise<void> {
    this.test.clock.advance(at - this.test.clock.now());
    for (const agent of agents) agent.beat();
    for (const agent of agents) await eventually('the host to be heard', () => this.isConnected(agent));
    this.test.core.workers.runAll();
  }

  pass(ms: number, ...agents: FakeAgent[]): Promise<void> {
    return this.passTo(this.test.clock.now() + ms, ...agents);
  }

  /** An instance on a host of its own, which waits with its answer. */
  async creating(): Promise<Rented & { provision: WireCommand }> {
    const agent = await this.test.host({ gpus: 1, automatic: false });
    const offerId = await this.test.offer(agent);
    const body = { offer_id: offerId, template_id: this.templateId, disk_gb: 10 };
    const { id } = await this.renter.api.post<InstanceBody>('/v1/instances', body);
    return { agent, id, offerId, provision: await this.nextCommand(agent) };
  }

  async running(): Promise<Rented> {
    const { provision, ...rented } = await this.creating();
    rented.agent.done(provision);
    rented.agent.held.length = 0;
    rented.agent.automatic = true;
    await statusIs(this.renter.api, rented.id, 'running');
    return rented;
  }

  async stopped(): Promise<Rented> {
    const rented = await this.running();
    await this.renter.api.post(`/v1/instances/${rented.id}/stop`);
    await statusIs(this.renter.api, rented.id, 'stopped');
    return rented;
  }

  /** The newest command that the host has not answered. */
  nextCommand(agent: FakeAgent): Promise<WireCommand> {
    return eventually('a command', () => {
      agent.beat();
      return agent.held.at(-1);
    });
  }
}
