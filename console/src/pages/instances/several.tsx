import { useState } from 'react';
import { ApiError } from '../../data/api/api.js';
import { useActs, VERBS, type InstanceAct, type Outcome } from '../../data/instances/instance-acts.js';
import { diskPrice, nameOf } from '../../data/instances/instances.js';
import { actsOn, useMayStart } from '../../data/instances/may-start.js';
import type { Instance } from '../../data/api/models.js';
import { Button } from '../../parts/controls/button.js';
import { Confirm } from '../../parts/controls/dialog.js';
import { Hourly } from '../../parts/values/money.js';
import { Notice } from '../../parts/controls/states.js';
import { Status } from '../../parts/values/status.js';
import { namesOf } from './choice.js';
import styles from './page.module.css';

const ACTS = ['start', 'stop', 'destroy'] as const;

interface SeveralProps {
  selected: readonly Instance[];
  onSelectNone: () => void;
}

/** What can be done with all selected instances at once, and how each has answered. */
export function Several({ selected, onSelectNone }: SeveralProps) {
  const [asked, setAsked] = useState<InstanceAct>();
  const acting = useActs();
  const mayStart = useMayStart();
  const targets = (act: InstanceAct) => selected.filter((instance) => actsOn(instance, mayStart).includes(act));
  const confirm = (act: InstanceAct) => {
    setAsked(undefined);
    acting.begin(act, targets(act));
    onSelectNone();
  };
  return (
    <>
      {selected.length > 0 && (
        <div className={styles.several} role="group" aria-label="Selected instances">
          <span role="status">{selected.length} selected</span>
          {ACTS.filter((act) => targets(act).length > 0).map((act) => (
            <Button key={act} onClick={() => setAsked(act)} aria-haspopup="dialog">
              {VERBS[act]} {targets(act).length}
            </Button>
          ))}
          <Button kind="plain" onClick={onSelectNone}>
            Select none
          </Button>
        </div>
      )}
      {acting.outcomes && <Outcomes {...acting} outcomes={acting.outcomes} />}
      {asked !== undefined && (
        <Confirm
          isOpen
          title={titleOf(asked, targets(asked))}
          verb={VERBS[asked]}
          kind={asked === 'destroy' ? 'danger' : 'main'}
          onConfirm={() => confirm(asked)}
          onClose={() => setAsked(undefined)}
        >
          <Consequence act={asked} targets={targets(asked)} />
        </Confirm>
      )}
    </>
  );
}

function titleOf(act: InstanceAct, targets: readonly Instance[]): string {
  const count = targets.length === 1 ? '1 instance' : `${targets.length} instances`;
  if (act === 'destroy') return `Destroy ${count} and ${sum(targets, ({ disk_gb }) => disk_gb)} GB of disk`;
  if (act === 'start') return `Start ${count}`;
  const gives = targets.some(({ stop_releases_gpus }) => stop_releases_gpus);
  return gives ? `Stop ${count} and give their GPUs away` : `Stop ${count}`;
}

function Consequence({ act, targets }: { act: InstanceAct; targets: readonly Instance[] }) {
  const released = targets.filter(({ release_stopped_after_hours }) => release_stopped_after_hours !== null).length;
  const running = targets.filter(({ status }) => status === 'running').length;
  return (
    <>
      <p className={styles.names}>{namesOf(targets)}</p>
      {act === 'start' && (
        <p>
          They cost <Hourly micro={sum(targets, (each) => each.price_per_hour_micro)} /> together while they run.
        </p>
      )}
      {act === 'stop' && (
        <p>
          What they do is cut off. Their disks stay, for <Hourly micro={sum(targets, diskPrice)} /> together.
          {released > 0 &&
            ` The terms of ${released} release the GPUs some hours later: a later start needs the same GPUs to be free.`}
        </p>
      )}
      {act === 'destroy' && (
        <p>
          The disks and everything on them are removed from the machines. Nobody can bring them back.
          {running > 0 && ` ${running} of them ${running === 1 ? 'runs' : 'run'} now: what they do is cut off.`}
        </p>
      )}
    </>
  );
}

/** How each instance has answered; it stays until somebody has read it. */
function Outcomes({ act, outcomes, forget }: { act: InstanceAct; outcomes: readonly Outcome[]; forget: () => void }) {
  const open = outcomes.filter(({ changed, error }) => changed === undefined && error === undefined).length;
  const failed = outcomes.filter(({ error }) => error !== undefined);
  const refused = failed.filter(({ error }) => error instanceof ApiError).length;
  const counts = [
    [outcomes.length - open - failed.length, `of ${outcomes.length} accepted`],
    [refused, 'refused'],
    [failed.length - refused, 'without an answer'],
    [open, 'to come'],
  ] as const;
  const said = counts.filter(([count], index) => index === 0 || count > 0).map((each) => each.join(' '));
  return (
    <Notice kind={failed.length > 0 ? 'warning' : 'note'}>
      <p role="status">{`${VERBS[act]}: ${said.join(', ')}`}</p>
      <ul className={styles.outcomes}>
        {outcomes.map(({ instance, changed, error }) => (
          <li key={instance.id}>
            <span className={styles.names}>{nameOf(instance)}:</span>{' '}
            {changed ? <Status status={changed.status} /> : (error?.message ?? '…')}
          </li>
        ))}
      </ul>
      <div>
        <Button onClick={forget}>I have read it</Button>
      </div>
    </Notice>
  );
}

function sum<Item>(items: readonly Item[], amountOf: (item: Item) => number): number {
  return items.reduce((total, item) => total + amountOf(item), 0);
}
