import { useEffect, useReducer, useRef } from 'react';
import { api } from '../../data/api/api.js';
import { LogText } from '../../data/instances/log-text.js';
import { pause } from '../../data/live/pause.js';

const POLL_MS = 3_000;
/** While it fails, each wait is twice the one before, up to this. */
const LONGEST_MS = 30_000;
/** As many as a browser shows without effort; earlier ones are dropped. */
const MOST_LINES = 5_000;
const MOST_CHARACTERS = 1_000_000;
const AT_ONCE = 1_000;

export interface Logs {
  /** Undefined: nothing was read yet. */
  lines: readonly string[] | undefined;
  /** Why the last read has failed; of several in a row, the first: the next has another id, and would be heard as news. */
  error: unknown;
}

type Answer = { lines: readonly string[]; lines_missed: boolean | null } | { error: unknown };

function withAnswer({ lines, error }: Logs, answer: Answer): Logs {
  if ('error' in answer) return { lines, error: error ?? answer.error };
  const gap = answer.lines_missed ? ['... lines are missing here: more were written than are kept ...'] : [];
  return { lines: newest([...(lines ?? []), ...gap, ...answer.lines]), error: undefined };
}

function newest(lines: readonly string[]): readonly string[] {
  let characters = 0;
  const tooOld = lines.findLastIndex((line, index) => {
    characters += line.length + 1;
    return characters > MOST_CHARACTERS || lines.length - index > MOST_LINES;
  });
  return lines.slice(tooOld + 1);
}

/**
 * Follows the output of an instance: each line once, at the pace of the contract, ever more slowly while it fails; not while the page is
 * hidden. `readNow` ends the wait for the next read.
 */
export function useLogs(id: string): Logs & { readNow: () => void } {
  const [logs, dispatch] = useReducer(withAnswer, { lines: undefined, error: undefined });
  const waiting = useRef<AbortController>(undefined);
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const read = readerOf(id, signal);
    const follow = async () => {
      for (let wait = POLL_MS; ;) {
        const answer = await read();
        if (signal.aborted) return;
        if (answer) dispatch(answer);
        wait = answer && 'error' in answer ? Math.min(2 * wait, LONGEST_MS) : POLL_MS;
        waiting.current = new AbortController();
        await pause(wait, AbortSignal.any([signal, waiting.current.signal]));
      }
    };
    void follow();
    return () => controller.abort();
  }, [id]);
  return { ...logs, readNow: () => waiting.current?.abort() };
}

/** Returns a function that reads the last lines of the output, then those that were written since; undefined while the page is hidden. */
function readerOf(id: string, signal: AbortSignal): () => Promise<Answer | undefined> {
  let after = '';
  let text = new LogText();
  return async () => {
    if (document.hidden && after !== '') return undefined;
    try {
      const params = { path: { id }, query: { tail: AT_ONCE, after } };
      const answer = await api.get('/v1/instances/{id}/logs', { params, signal });
      const { lines, next_after = '', lines_missed = null } = answer;
      after = next_after;
      if (lines_missed) text = new LogText();
      return { lines: lines.map((line) => text.line(line)), lines_missed };
    } catch (error) {
      return { error };
    }
  };
}
