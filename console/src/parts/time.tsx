import type { PointerEvent } from 'react';
import { useTimely } from '../data/clock.js';
import type { Organization } from '../data/models.js';
import { exactTime, lasts, relativeTime, shortTime, type Lasting } from '../data/times.js';

/** How long ago something was, or how soon it will be; the exact time on hover. */
export function Ago({ at }: { at: string }) {
  return <Time at={at}>{useTimely((now) => relativeTime(at, now))}</Time>;
}

/** A time of the clock, with its day where that is not today; the exact time on hover. */
export function At({ at }: { at: string }) {
  return <Time at={at}>{useTimely((now) => shortTime(at, now))}</Time>;
}

/** How long a balance lasts; the exact time of its end on hover, if that is known. */
export function Lasts(props: Lasting) {
  const words = useTimely((now) => lasts(props, now));
  return props.until === null ? <>{words}</> : <Time at={props.until}>{words}</Time>;
}

/** How long an organization's balance lasts with what is charged now. */
export function BalanceLasts({ of }: { of: Organization }) {
  const { balance_micro, charged_per_hour_micro = 0, lasts_until } = of;
  return <Lasts balanceMicro={balance_micro} chargedMicro={charged_per_hour_micro} until={lasts_until} />;
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
