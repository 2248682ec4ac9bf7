import { useState } from 'react';
import { useInstanceAct, VERBS, type InstanceAct } from '../../data/instances/instance-acts.js';
import { diskPrice, inHours, nameOf } from '../../data/instances/instances.js';
import { actsOn, useMayStart } from '../../data/instances/may-start.js';
import type { Instance } from '../../data/api/models.js';
import { Button } from '../controls/button.js';
import { Confirm } from '../controls/dialog.js';
import styles from '../instance-actions.module.css';
import { Hourly } from '../values/money.js';
import { ErrorBox } from '../controls/states.js';

/**
 * The acts that the API allows at present, exactly, for those whose role may change something. What ends running work or destroys is asked
 * for first.
 */
export function InstanceActions({ instance }: { instance: Instance }) {
  const { id } = instance;
  const mayStart = useMayStart();
  const act = useInstanceAct(id);
  const [asked, setAsked] = useState<InstanceAct>();
  const asks = (what: InstanceAct) => what === 'destroy' || what === 'stop';
  const begin = (what: InstanceAct) => {
    act.reset();
    if (asks(what)) setAsked(what);
    else act.mutate(what);
  };
  const close = () => setAsked(undefined);
  const confirm = () => asked && act.mutate(asked, { onSuccess: close });
  return (
    <div className={styles.acts}>
      <div className={styles.buttons}>
        {actsOn(instance, mayStart).map((what) => (
          <Button
            key={what}
            isBusy={act.isPending && act.variables === what}
            onClick={() => begin(what)}
            aria-haspopup={asks(what) ? 'dialog' : undefined}
          >
            {VERBS[what]}
            <span className={styles.hidden}> {nameOf(instance)}</span>
          </Button>
        ))}
      </div>
      {asked === undefined && act.error && <ErrorBox error={act.error} />}
      <Confirm
        isOpen={asked !== undefined}
        isBusy={act.isPending}
        error={act.error}
        onConfirm={confirm}
        onClose={close}
        title={asked === 'stop' ? stopTitle(instance) : destroyTitle(instance)}
        verb={VERBS[asked ?? 'destroy']}
      >
        {asked === 'stop' ? <StopWords instance={instance} /> : <DestroyWords instance={instance} />}
      </Confirm>
    </div>
  );
}

function destroyTitle(instance: Instance): string {
  return `Destroy ${nameOf(instance)} and its ${instance.disk_gb} GB disk`;
}

function stopTitle(instance: Instance): string {
  const { stop_releases_gpus, release_stopped_after_hours: hours } = instance;
  if (stop_releases_gpus) return `Stop ${nameOf(instance)} and give its GPUs away`;
  if (hours === null) return `Stop ${nameOf(instance)}`;
  return `Stop ${nameOf(instance)} and keep its GPUs for ${inHours(hours)}`;
}

function DestroyWords({ instance }: { instance: Instance }) {
  return (
    <>
      <p>The disk and everything on it is removed from the machine. Nobody can bring it back.</p>
      {instance.status === 'running' && <p>It runs now: what it does is cut off. Charges end with it.</p>}
    </>
  );
}

/** Says what a stop ends, and what stays. */
export function StopWords({ instance }: { instance: Instance }) {
  return (
    <>
      <p>Stopping ends the running work. What is not on the disk is lost.</p>
      <p>{gpuWords(instance)}</p>
      <p>
        The disk stays, for <Hourly micro={diskPrice(instance)} />.
      </p>
    </>
  );
}

function gpuWords({ stop_releases_gpus, release_stopped_after_hours: hours }: Instance): string {
  const later = 'A later start needs the same GPUs to be free.';
  if (stop_releases_gpus) return `A payment is disputed: a stopped instance does not keep its GPUs. ${later}`;
  if (hours === null) return 'The GPUs stay reserved for a later start.';
  return `The GPUs are released ${inHours(hours)} after the stop, and others can rent them. ${later}`;
}
