/** Most attempts at once: in all, of one organization, and of one endpoint. One that has failed gets one at a time. */
const MOST = 50;
const MOST_OF_ORGANIZATION = 4;
const MOST_OF_ENDPOINT = 2;
/** Of so many attempts each organization has at most one: slow servers of a few leave room for the others. */
const MANY = 25;

/** Whose attempt it is. */
export interface Owner {
  endpointId: string;
  organizationId: string;
  deliveryId: string;
}

/** Counts the attempts that are under way. */
export class Flights {
  private readonly counts = new Map<string, number>();
  private readonly deliveries: Set<string>;

  constructor(owners: Iterable<Owner> = []) {
    this.deliveries = new Set();
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

  add({ endpointId, organizationId, deliveryId }: Owner): void {
    this.deliveries.add(deliveryId);
    for (const id of [endpointId, organizationId]) this.counts.set(id, this.of(id) + 1);
  }

  /** Tells whether one more attempt can be made at an endpoint. */
  allows({ endpointId, organizationId, failures }: Omit<Owner, 'deliveryId'> & { failures: number }): boolean {
    const most = failures > 0 ? 1 : MOST_OF_ENDPOINT;
    const mostOfOrganization = this.deliveries.size < MANY ? MOST_OF_ORGANIZATION : 1;
    return !this.isFull && this.of(organizationId) < mostOfOrganization && this.of(endpointId) < most;
  }
}
