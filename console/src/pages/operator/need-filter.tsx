import { Field, Select } from '../../parts/forms/field.js';
import styles from './operator.module.css';

interface Props<Kind extends string> {
  /** Why something on the list can need an act, in words. */
  words: Readonly<Record<Kind, string>>;
  /** Undefined: everything is listed. */
  value: Kind | undefined;
  onChoose: (kind: Kind | undefined) => void;
}

/** A choice of what needs an act for one reason. */
export function NeedFilter<Kind extends string>({ words, value, onChoose }: Props<Kind>) {
  const kinds = Object.keys(words) as Kind[];
  return (
    <div className={styles.narrow}>
      <Field label="Needs an act">
        {(tied) => (
          <Select
            {...tied}
            choices={[{ value: '', label: 'all' }, ...kinds.map((kind) => ({ value: kind, label: words[kind] }))]}
            value={value ?? ''}
            onChoose={(chosen) => onChoose(kinds.find((kind) => kind === chosen))}
          />
        )}
      </Field>
    </div>
  );
}
