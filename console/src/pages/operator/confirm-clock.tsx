import { useQuery } from '@tanstack/react-query';
import { api } from '../../data/api/api.js';
import { useNow } from '../../data/api/clock.js';
import { ConfirmButton } from '../../parts/controls/confirm-button.js';
import { clock } from './control-plane/queries.js';
import { OPERATED } from './queries.js';

/** The act that lets time-outs go on after somebody has set the clock. */
export function ConfirmClock() {
  return (
    <ConfirmButton
      label="Confirm"
      about="the clock"
      title="Confirm that the clock is right, and let time-outs go on"
      kind="main"
      act={() => api.post('/v1/operator/clock/confirm')}
      old={OPERATED}
    >
      <p>
        First compare the clock of the control plane with a clock that you trust. What is due by it happens at once.
      </p>
      <ServerClock />
    </ConfirmButton>
  );
}

/** The present time of the control plane, by its answers, and by how much its clock has jumped. */
function ServerClock() {
  const now = new Date(useNow(1_000)).toISOString().slice(0, 19).replace('T', ' ');
  const { data } = useQuery(clock);
  return (
    <p>
      The control plane has {now} UTC.
      {data?.stepped_ms != null &&
        ` Its clock has gone ${data.stepped_ms < 0 ? 'back' : 'ahead'} by ${seconds(data.stepped_ms)}.`}
    </p>
  );
}

function seconds(ms: number): string {
  return `${Math.round(Math.abs(ms) / 1_000).toLocaleString('en-US')} s`;
}
