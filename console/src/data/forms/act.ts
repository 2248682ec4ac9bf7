import { useMutation, useQueryClient, type QueryKey } from '@tanstack/react-query';

/**
 * Returns an act that changes something. After it has succeeded, the queries whose keys begin with one of `old` are read again, and
 * `onDone` is called with the answer.
 */
export function useAct<Given = void, Answer = unknown>(
  act: (given: Given) => Promise<Answer>,
  old: readonly QueryKey[],
  onDone?: (answer: Answer) => void,
) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: act,
    onSuccess: async (answer) => {
      await Promise.all(old.map((queryKey) => queries.invalidateQueries({ queryKey })));
      onDone?.(answer);
    },
  });
}
