import { overShare, type Holder } from '../../domain/shared-total.js';

/** Most attempts at once: in all, of one person, and of one endpoint. One that has failed gets one at a time. */
const MOST = 50;
const MOST_OF_PERSON = 4;
const MOST_OF_ENDPOINT = 2;
/** Of so many attempts each person has at most one: slow servers of a few leave room for the others. */
const MANY = 25;

/** Whose attempt it is. */
export interface Owner {
  endpointId: string;
  organizationId: string;
  /** Whose organization it is. */
  holder: Holder;
  deliveryId: string;
}

/** Counts the attempts that are under way. */
export class Flights {
  private readonly counts = new Map<string, number>();
  private readonly deliveries = new Map<string, Holder>();

  constructor(owners: Iterable<Owner> = []) {
    for (const owner of owners) this.add(owner);
  }

  get isFull(): boolean {
    return this.deliveries.size >= MOST;
  }

  has(deliveryId: string): boolean {
    return this.deliveries.has(deliveryId);
  }

  of(id: string): number {
    return this.counts.get(id) ?? 0;
  }

  add({ endpointId, holder, deliveryId }: Owner): void {
    this.deliveries.set(deliveryId, holder);
    for (const id of [endpointId, holder.person]) this.counts.set(id, this.of(id) + 1);
  }

  /** Tells whether one more attempt can be made at an endpoint. */
  allows({ endpointId, holder, failures }: Pick<Owner, 'endpointId' | 'holder'> & { failures: number }): boolean {
    const most = failures > 0 ? 1 : MOST_OF_ENDPOINT;
    const mostOfPerson = this.deliveries.size < MANY ? MOST_OF_PERSON : 1;
    return this.of(holder.person) < mostOfPerson && this.of(endpointId) < most && this.hasRoomFor(holder);
  }

  /** Tells whether an attempt fits beside those under way, none of which is broken off for it. */
  private hasRoomFor(newcomer: Holder): boolean {
    const holders = [...this.deliveries.values(), newcomer];
    const losers = overShare(holders.keys(), {
      most: MOST,
      holderOf: (at) => holders[at] ?? newcomer,
      mayLose: (at) => at === this.deliveries.size,
    });
    return losers.length === 0;
  }
}
