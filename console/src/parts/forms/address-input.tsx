import { useEffect, useEffectEvent, useState, type ChangeEvent, type ComponentProps, type KeyboardEvent } from 'react';
import { Input } from './field.js';

/** For so long nobody has typed when words count. */
const PAUSE_MS = 300;
/** The first digits of a year are a year, too: of those, only these count while somebody types. */
const LIKELY_DAY = /^[2-9]\d{3}-/;

interface Props extends Omit<ComponentProps<'input'>, 'type' | 'value' | 'onChange' | 'onBlur' | 'onKeyDown'> {
  /** What the address says; undefined: nothing. */
  value: string | undefined;
  /** Writes it into the address. `replace`: the address says something already, and the browser's back goes over words, not over letters. */
  onWrite: (text: string | undefined, replace: boolean) => void;
}

/** Words that are a part of the address, from a pause on, and at once on Enter or when the field is left. */
export function WordsInput({ value = '', onWrite, ...props }: Props) {
  const { text, written, setText, write } = useTyped(value.trim(), onWrite);
  const writeNow = useEffectEvent(write);
  useEffect(() => {
    if (text.trim() === written) return;
    const timer = setTimeout(() => writeNow(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text, written]);
  return (
    <Input
      {...props}
      type="search"
      value={text}
      onChange={({ target }) => setText(target.value)}
      {...whenDone(() => write(text))}
    />
  );
}

/** A day that is a part of the address, as YYYY-MM-DD, at once if it is a likely one, else on Enter or when the field is left. */
export function DayInput({ value = '', onWrite, ...props }: Props) {
  const { text, setText, write } = useTyped(value, onWrite);
  const change = ({ target }: ChangeEvent<HTMLInputElement>) => {
    setText(target.value);
    if (LIKELY_DAY.test(target.value)) write(target.value);
  };
  return (
    <Input max="9999-12-31" {...props} type="date" value={text} onChange={change} {...whenDone(() => write(text))} />
  );
}

/**
 * Returns what stands in a field whose value is a part of the address, and a function that writes it there. The address follows a moment
 * later: a field that showed what it says would lose letters. It still wins where something else has changed it.
 */
function useTyped(value: string, onWrite: Props['onWrite']) {
  const [text, setText] = useState(value);
  // What the address has said last, and what it has been told since.
  const [address, setAddress] = useState({ value, written: value });
  if (address.value !== value) {
    setAddress({ value, written: value });
    if (address.written !== value) setText(value);
  }
  const write = (typed: string) => {
    const written = typed.trim();
    if (written === address.written) return;
    setAddress({ value, written });
    onWrite(written === '' ? undefined : written, value !== '');
  };
  return { text, written: address.written, setText, write };
}

/** Returns what calls on Enter, and when the field is left. */
function whenDone(call: () => void) {
  return { onBlur: call, onKeyDown: ({ key }: KeyboardEvent) => key === 'Enter' && call() };
}
