import { heldGpus } from '../../data/instances/instances.js';
import type { Instance } from '../../data/api/models.js';
import { Money } from './money.js';
import { Ago, At } from './time.js';

/** In these no limit has an effect any more. */
const ENDED: readonly Instance['status'][] = ['error', 'destroying', 'destroyed'];

/** What happens to an instance without an act of its renter: the release of its GPUs, or its destruction. */
export function Outlook({ instance }: { instance: Instance }) {
  const { destroys_at } = instance;
  if (destroys_at !== null)
    return (
      <span>
        Destroyed <Ago at={destroys_at} />
      </span>
    );
  const held = heldGpus(instance);
  switch (held?.state) {
    case 'released':
      return <span>GPUs released: a start needs the same GPUs to be free</span>;
    case 'releasing':
      return <span>GPUs are being released</span>;
    case 'unreleasable':
      return <span>GPUs kept: the machine cannot release them</span>;
    case 'kept':
      return held.until === null ? null : (
        <span>
          GPUs kept until <At at={held.until} />
        </span>
      );
    case undefined:
      return null;
  }
}

/** The limits that are set, in a few words: `Stops Wed 14:20, at $5.00, when idle for 60 min`. */
export function LimitWords({ instance }: { instance: Instance }) {
  const { status, stop_at, max_charge_micro, idle_stop_minutes, on_limit } = instance;
  const limits = [
    stop_at !== null && <At key="at" at={stop_at} />,
    max_charge_micro !== null && (
      <span key="charge">
        at <Money micro={max_charge_micro} />
      </span>
    ),
    idle_stop_minutes !== null && <span key="idle">when idle for {idle_stop_minutes} min</span>,
  ].filter((each) => each !== false);
  if (limits.length === 0 || ENDED.includes(status)) return null;
  return (
    <span>
      {on_limit === 'destroy' ? 'Is destroyed ' : 'Stops '}
      {limits.flatMap((each, index) => (index === 0 ? [each] : [', ', each]))}
    </span>
  );
}
