import { useState, type SyntheticEvent } from 'react';
import { parseMoney, typedMoney } from '../../data/values/money.js';
import { Field, Input } from '../../parts/forms/field.js';

interface Props {
  /** The highest price per hour that is asked for, in micro-dollars. */
  micro: number | undefined;
  onChoose: (micro: number | undefined) => void;
}

/** The highest price per hour. It counts from when it is entered or the field is left: a part of an amount is another amount. */
export function PriceField({ micro, onChoose }: Props) {
  const [text, setText] = useState(typed(micro));
  const [isWrong, setIsWrong] = useState(false);
  // The browser's back has another one.
  const [shown, setShown] = useState(micro);
  if (shown !== micro) {
    setShown(micro);
    setText(typed(micro));
    setIsWrong(false);
  }
  const choose = () => {
    const chosen = parseMoney(text);
    const isNone = text.trim() === '';
    setIsWrong(chosen === undefined && !isNone);
    if ((chosen !== undefined || isNone) && chosen !== micro) onChoose(chosen);
  };
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    choose();
  };
  return (
    <form onSubmit={submit}>
      <Field label="At most, in $/h" error={isWrong ? 'Give an amount such as 1.50.' : undefined}>
        {(tied) => (
          <Input
            {...tied}
            inputMode="decimal"
            placeholder="any price"
            value={text}
            onChange={({ target }) => setText(target.value)}
            onBlur={choose}
          />
        )}
      </Field>
    </form>
  );
}

function typed(micro: number | undefined): string {
  return micro === undefined ? '' : typedMoney(micro);
}
