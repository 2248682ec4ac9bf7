import { useState } from 'react';
import { Button, LinkButton } from '../../parts/controls/button.js';
import { Section } from '../../parts/layout/page.js';
import { Marked } from '../../parts/values/status.js';
import { At } from '../../parts/values/time.js';
import { ConfirmClock } from './confirm-clock.js';
import type { Need } from './models.js';
import { listOf, shownOf, type Shown } from './needs.js';
import styles from './operator.module.css';

/** What needs an act of an operator now, each with its button. */
export function NeedsList({ needs }: { needs: readonly Need[] }) {
  return (
    <Section title="Needs an act now">
      {needs.length === 0 ? (
        <p className={styles.good}>
          <Marked shape="dot">Nothing. All machines are there, and nothing waits for you.</Marked>
        </p>
      ) : (
        <ul className={styles.needs}>
          {needs.map((need) => (
            <NeedLines key={need.kind} need={need} />
          ))}
        </ul>
      )}
    </Section>
  );
}

/** So many of a kind are shown at first: on a phone, more would hide the other kinds. */
const FOLDED = 3;

function NeedLines({ need: { kind, count, items } }: { need: Need }) {
  const [isOpen, setOpen] = useState(false);
  const first = isOpen ? items : items.slice(0, FOLDED);
  const [folded, more] = [items.length - first.length, count - first.length];
  const { words, ...list } = listOf(kind);
  return (
    <>
      {first.map((item) => {
        const shown = shownOf(kind, item);
        return <NeedLine key={shown.key} kind={kind} shown={shown} />;
      })}
      {more > 0 && (
        <li>
          <div className={styles.need}>And {more.toLocaleString('en-US')} more of these.</div>
          <div className={styles.acts}>
            {folded > 0 && <Button onClick={() => setOpen(true)}>Show {folded} more</Button>}
            {count > items.length && <LinkButton {...list}>{words}</LinkButton>}
          </div>
        </li>
      )}
    </>
  );
}

function NeedLine({ kind, shown: { words, why, since, link } }: { kind: Need['kind']; shown: Shown }) {
  return (
    <li>
      <div className={styles.need}>
        {words}
        <span className={styles.weak}>
          {why}{' '}
          {since !== null && (
            <>
              Since <At at={since} />.
            </>
          )}
        </span>
      </div>
      {kind === 'clock_untrusted' && <ConfirmClock />}
      {link && <LinkButton {...link}>{link.words}</LinkButton>}
    </li>
  );
}
