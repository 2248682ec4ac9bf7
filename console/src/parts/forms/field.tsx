import { useId, type ComponentProps, type ReactNode } from 'react';
import { classNames } from '../controls/class-names.js';
import styles from '../field.module.css';
import { useFault } from './form.js';

interface FieldProps {
  label: ReactNode;
  hint?: ReactNode;
  /** The path of what it sends, where the control plane can refuse that: see `Form`. */
  name?: string;
  /** What is wrong with the value, and what to do. */
  error?: string | undefined;
  /** The input; it is given what ties it to its label, its hint and its error. */
  children: (tied: {
    id: string;
    name: string | undefined;
    'aria-describedby': string | undefined;
    'aria-invalid': true | undefined;
  }) => ReactNode;
}

/** An input with its label, a hint and an error. */
export function Field({ label, hint, name, error: found, children }: FieldProps) {
  const id = useId();
  const refused = useFault(name);
  const error = found ?? refused;
  const described = [hint !== undefined && `${id}-hint`, error !== undefined && `${id}-error`].filter(Boolean);
  const tied = {
    id,
    name,
    'aria-describedby': described.length > 0 ? described.join(' ') : undefined,
    'aria-invalid': error === undefined ? undefined : (true as const),
  };
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      {children(tied)}
      {hint !== undefined && (
        <p id={`${id}-hint`} className={styles.hint}>
          {hint}
        </p>
      )}
      {error !== undefined && (
        <p id={`${id}-error`} className={styles.wrong}>
          {error}
        </p>
      )}
    </div>
  );
}

/** A line of text. */
export function Input({ className, ...props }: ComponentProps<'input'>) {
  return <input autoComplete="off" {...props} className={classNames(styles.input, className)} />;
}

/** Text of many lines. */
export function TextArea({ className, ...props }: ComponentProps<'textarea'>) {
  return <textarea {...props} className={classNames(styles.input, styles.area, className)} />;
}

/** One of a few choices. It is the browser's own: it works with every keyboard, screen reader and phone. */
export function Select<T extends string>({
  choices,
  value,
  onChoose,
  ...props
}: Omit<ComponentProps<'select'>, 'value' | 'onChange'> & {
  choices: readonly { value: T; label: string }[];
  value: T;
  onChoose: (value: T) => void;
}) {
  return (
    <select
      {...props}
      className={classNames(styles.input, styles.select)}
      value={value}
      onChange={(event) => onChoose(event.target.value as T)}
    >
      {choices.map((choice) => (
        <option key={choice.value} value={choice.value}>
          {choice.label}
        </option>
      ))}
    </select>
  );
}

/** Something that is so or not. */
export function CheckBox({ label, ...props }: ComponentProps<'input'> & { label: ReactNode }) {
  return (
    <label className={styles.check}>
      <input {...props} type="checkbox" /> <span>{label}</span>
    </label>
  );
}
