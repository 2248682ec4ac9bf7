import { useEffect, useReducer } from 'react';
import { api } from '../../data/api.js';
import { LogText } from '../../data/log-text.js';

const POLL_MS = 3_000;
/** As many as a browser shows without effort; earlier ones are dropped. */
const MOST_LINES = 5_000;
const AT_ONCE = 1_000;

export interface Logs {
  /** Undefined: nothing was read yet. */
  lines: readonly string[] | undefined;
  error: unknown;
}

type Answer = { lines: readonly string[]; lines_missed?: boolean | null } | { error: unknown };

function withAnswer({ lines = [] }: Logs, answer: Answer): Logs {
  if ('error' in answer) return { lines, error: answer.error };
  const gap = answer.lines_missed ? ['... lines are missing here: more were written than are kept ...'] : [];
  return { lines: [...lines, ...gap, ...answer.lines].slice(-MOST_LINES), error: undefined };
}

/** Follows the output of an instance: each line once, at the pace of the contract; not while the page is hidden. */
export function useLogs(id: string, isFollowing: boolean): Logs {
  const [logs, dispatch] = useReducer(withAnswer, { lines: undefined, error: undefined });
  useEffect(() => {
    if (!isFollowing) return;
    const controller = new AbortController();
    const { signal } = controller;
    let after = '';
    let text = new LogText();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      try {
        if (!document.hidden || after === '') {
          const params = { path: { id }, query: { tail: AT_ONCE, after } };
          const {
            lines,
            next_after = '',
            lines_missed = null,
          } = await api.get('/v1/instances/{id}/logs', { params, signal });
          after = next_after;
          if (lines_missed) text = new LogText();
          dispatch({ lines: lines.map((line) => text.line(line)), lines_missed });
        }
      } catch (error) {
        if (!signal.aborted) dispatch({ error });
      }
      if (!signal.aborted) timer = setTimeout(() => void read(), POLL_MS);
    };
    void read();
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [id, isFollowing]);
  return logs;
}
