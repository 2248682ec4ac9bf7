import { useQuery } from '@tanstack/react-query';
import { LinkButton } from '../../../../parts/controls/button.js';
import { Money } from '../../../../parts/values/money.js';
import { Section } from '../../../../parts/layout/page.js';
import { Loaded } from '../../../../parts/controls/states.js';
import styles from '../../operator.module.css';
import { EARNED_DAYS, earnedBy } from './queries.js';

/** What was charged for the use of a machine, together and on the last day of use. */
export function Earned({ id }: { id: string }) {
  const query = useQuery(earnedBy(id));
  const byDay = (
    <LinkButton to="/operator/money/revenue" search={{ machine: id }}>
      Its revenue by day
    </LinkButton>
  );
  return (
    <Section title="Revenue" actions={byDay}>
      <Loaded query={query} rows={1}>
        {({ last, days, micro }) =>
          last === undefined ? (
            <p className={styles.weak}>Nothing was charged for its use in the last {EARNED_DAYS} days.</p>
          ) : (
            <p>
              <Money micro={micro} /> in the last {EARNED_DAYS} UTC days, on {days} of which it was used;{' '}
              <Money micro={last.gpu_micro + last.disk_micro} /> on the latest, {last.date}. Credits are not subtracted.
            </p>
          )
        }
      </Loaded>
    </Section>
  );
}
