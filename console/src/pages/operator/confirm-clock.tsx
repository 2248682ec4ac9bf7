import { api } from '../../data/api.js';
import { ConfirmButton } from '../../parts/confirm-button.js';
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
    </ConfirmButton>
  );
}
