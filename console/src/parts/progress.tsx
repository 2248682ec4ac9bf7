import { useQuery } from '@tanstack/react-query';
import { isUnderWay } from '../data/instances.js';
import type { Instance } from '../data/models.js';
import { timeline } from '../data/queries.js';

/** Why an instance is as it is, in a sentence: its error, or its newest event while it is under way. */
export function Reason({ instance }: { instance: Instance }) {
  const newest = useQuery({ ...timeline(instance.id, 1), enabled: isUnderWay(instance) });
  const words = instance.error_message ?? (isUnderWay(instance) ? newest.data?.[0]?.message : undefined);
  return words === undefined ? null : <span aria-live="polite">{words}</span>;
}
