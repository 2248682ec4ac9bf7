import { compileOnce, listIn, query } from '../../store/sql.js';
import type { Store, Tx } from '../../store/store.js';
import type { Endpoint } from './endpoints.js';

/** Most organizations that are looked at in one run. */
const MOST_AT_ONCE = 200;

/** The organizations that may have events which are no deliveries yet: after the start all of them, then those with new events. */
export class ChangedStreams {
  private readonly changed = new Set<string>();
  private isUnknown = true;

  constructor(store: Pick<Store, 'onChange' | 'onUnknownChange'>) {
    store.onChange('events', (stream) => this.note(stream));
    store.onUnknownChange(() => (this.isUnknown = true));
  }

  note(organizationId: string): void {
    this.changed.add(organizationId);
  }

  /** Looks at every organization again: what {@link take} has returned was not handled. */
  noteAll(): void {
    this.isUnknown = true;
  }

  /** Whether {@link take} has something to look at. */
  isEmpty(): boolean {
    return !this.isUnknown && this.changed.size === 0;
  }

  /** Returns the endpoints, which are on, of some of the organizations, and forgets these organizations. */
  take(tx: Tx): Endpoint[] {
    if (this.isUnknown) for (const { organization_id } of tx.all(withEndpoints({}))) this.changed.add(organization_id);
    this.isUnknown = false;
    const some = [...this.changed].slice(0, MOST_AT_ONCE);
    for (const id of some) this.changed.delete(id);
    return tx.all(endpointsOf({ organizations: JSON.stringify(some) }));
  }
}

export interface HasChangedStreams {
  changedStreams: ChangedStreams;
}

const withEndpoints = compileOnce(() =>
  query.selectFrom('webhook_endpoints').select('organization_id').where('disabled_at', 'is', null),
);

const endpointsOf = compileOnce(({ organizations }: { organizations: string }) =>
  query
    .selectFrom('webhook_endpoints')
    .selectAll()
    .where('disabled_at', 'is', null)
    .where('organization_id', 'in', listIn(organizations)),
);
