import type { PointerEvent } from 'react';
import { useTimely } from '../data/clock.js';
import { exactTime, lasts, relativeTime, shortTime } from '../data/times.js';

/** How long ago something was, or how soon it will be; the exact time on hover. */
export function Ago({ at }: { at: string }) {
  return <Time at={at}>{useTimely((now) => relativeTime(at, now))}</Time>;
}

/** A time of the clock, with its day where that is not today; the exact time on hover. */
export function At({ at }: { at: string }) {
  return <Time at={at}>{useTimely((now) => shortTime(at, now))}</Time>;
}

/** How long a balance lasts, given when it is used up; null: nothing is charged. */
export function Lasts({ until }: { until: string | null }) {
  const words = useTimely((now) => lasts(until, now));
  return until === null ? <>no charges</> : <Time at={until}>{words}</Time>;
}

/** Its exact time is made when it is pointed at: to make all of them would take a long list's time. */
function Time({ at, children }: { at: string; children: string | null }) {
  const showExact = ({ currentTarget }: PointerEvent<HTMLTimeElement>) => {
    currentTarget.title = exactTime(at);
  };
  return (
    <time dateTime={at} onPointerEnter={showExact}>
      {children}
    </time>
  );
}
