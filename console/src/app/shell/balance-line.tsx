import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useTimely } from '../../data/api/clock.js';
import { organization } from '../../data/api/queries.js';
import { useMay } from '../../data/api/rights.js';
import { duration } from '../../data/values/times.js';
import { Notice } from '../../parts/controls/states.js';

const SOON_MS = 4 * 3_600_000;

/** Warns once the balance lasts less than four hours, as events do, and says what follows when it is used up. */
export function BalanceLine() {
  const { data } = useQuery(organization);
  const mayPay = useMay('change_money');
  const words = useTimely((now) => warningOf(data?.balance_micro ?? 0, data?.lasts_until ?? null, now));
  return (
    <div role="status" aria-label="Balance">
      {words !== null && (
        <Notice kind="warning">
          <p>
            {words}{' '}
            {mayPay && (
              <Link to="/billing" search={{ pay: true }}>
                Add money
              </Link>
            )}
          </p>
        </Notice>
      )}
    </div>
  );
}

function warningOf(balanceMicro: number, until: string | null, now: number): string | null {
  const ms = until === null ? Infinity : Date.parse(until) - now;
  if (ms >= SOON_MS) return null;
  return ms > 0 && balanceMicro > 0
    ? `Your balance lasts ${duration(ms)} at what is charged now. Running instances are stopped then.`
    : 'Your balance is used up: running instances are stopped, and none can be started until money is added.';
}
