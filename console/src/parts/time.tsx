import { useNow } from '../data/clock.js';
import { exactTime, lasts, relativeTime, shortTime } from '../data/times.js';

/** How long ago something was, or how soon it will be; the exact time on hover. */
export function Ago({ at }: { at: string }) {
  const now = useNow();
  return (
    <time dateTime={at} title={exactTime(at)}>
      {relativeTime(at, now)}
    </time>
  );
}

/** A time of the clock, with its day where that is not today; the exact time on hover. */
export function At({ at }: { at: string }) {
  const now = useNow(60_000);
  return (
    <time dateTime={at} title={exactTime(at)}>
      {shortTime(at, now)}
    </time>
  );
}

/** How long a balance lasts, given when it is used up; null: nothing is charged. */
export function Lasts({ until }: { until: string | null }) {
  const now = useNow(10_000);
  if (until === null) return <>no charges</>;
  return (
    <time dateTime={until} title={exactTime(until)}>
      {lasts(until, now)}
    </time>
  );
}
