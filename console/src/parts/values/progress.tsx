import { useQuery } from '@tanstack/react-query';
import { isUnderWay } from '../../data/instances/instances.js';
import type { Instance } from '../../data/api/models.js';
import { timeline } from '../../data/api/queries.js';
import { TimedWords } from './timed-words.js';

/** Why an instance is as it is, in a sentence: its error, or its newest event while it is under way. */
export function Reason({ instance }: { instance: Instance }) {
  if (instance.error_message !== null) return <Words>{instance.error_message}</Words>;
  return isUnderWay(instance) ? <Newest id={instance.id} /> : null;
}

function Newest({ id }: { id: string }) {
  const { data } = useQuery(timeline(id, 1));
  return <Words>{data?.[0]?.message}</Words>;
}

function Words({ children }: { children: string | undefined }) {
  if (children === undefined) return null;
  return (
    <span aria-live="polite">
      <TimedWords>{children}</TimedWords>
    </span>
  );
}
