import type { PointerEvent } from 'react';
import { useTimely } from '../../data/api/clock.js';
import { useExactTimes } from '../../data/values/exact-times.js';
import type { Organization } from '../../data/api/models.js';
import { exactTime, lastingSince, lasts, relativeTime, shortTime, type Lasting } from '../../data/values/times.js';

/** How long ago something was, or how soon it will be; the exact time on hover, or for those who have chosen it. */
export function Ago({ at }: { at: string }) {
  return useExactTimes() ? <Exact at={at} /> : <Timely at={at} wordsAt={(now) => relativeTime(at, now)} />;
}

/** For how long something has been so; since when exactly, on hover or for those who have chosen it. */
export function Since({ at }: { at: string }) {
  const isExact = useExactTimes();
  if (!isExact) return <Timely at={at} wordsAt={(now) => lastingSince(at, now)} />;
  return (
    <>
      since <Exact at={at} />
    </>
  );
}

/** A time of the clock, with its day where that is not today; the exact time on hover, or for those who have chosen it. */
export function At({ at }: { at: string }) {
  return useExactTimes() ? <Exact at={at} /> : <Timely at={at} wordsAt={(now) => shortTime(at, now)} />;
}

/** How long a balance lasts; the exact time of its end on hover, or for those who have chosen it, if that is known. */
export function Lasts(props: Lasting) {
  const { until } = props;
  const words = useTimely((now) => lasts(props, now));
  const isExact = useExactTimes();
  if (until === null) return <>{words}</>;
  if (isExact)
    return (
      <>
        until <Exact at={until} />
      </>
    );
  return <Timely at={until} wordsAt={(now) => lasts(props, now)} />;
}

/** How long an organization's balance lasts with what is charged now. */
export function BalanceLasts({ of }: { of: Organization }) {
  const { balance_micro, charged_per_hour_micro = 0, lasts_until } = of;
  return <Lasts balanceMicro={balance_micro} chargedMicro={charged_per_hour_micro} until={lasts_until} />;
}

function Exact({ at }: { at: string }) {
  return <time dateTime={at}>{exactTime(at)}</time>;
}

/** Its exact time is made when it is pointed at: to make all of them would take a long list's time. */
function Timely({ at, wordsAt }: { at: string; wordsAt: (now: number) => string }) {
  const words = useTimely(wordsAt);
  const showExact = ({ currentTarget }: PointerEvent<HTMLTimeElement>) => {
    currentTarget.title = exactTime(at);
  };
  return (
    <time dateTime={at} onPointerEnter={showExact}>
      {words}
    </time>
  );
}
