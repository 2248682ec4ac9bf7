import { exactMoney, hourlyMoney } from '../../data/values/money.js';

/** An amount in micro-dollars, with every digit that it has. */
export function Money({ micro }: { micro: number }) {
  return <data value={micro}>{exactMoney(micro)}</data>;
}

/** A price per hour in micro-dollars. */
export function Hourly({ micro }: { micro: number }) {
  return <data value={micro}>{hourlyMoney(micro)}</data>;
}
