import { createContext, useContext, useEffect, useLayoutEffect, useRef, useState } from 'react';
import type { ChangeEvent, ComponentProps, MouseEvent, SyntheticEvent } from 'react';
import { ApiError } from '../../data/api/api.js';
import { ErrorBox, messageOf } from '../controls/states.js';

/** What the control plane has refused, as far as nobody has changed it since. */
interface Faults {
  /** By the name of a field. */
  fields: Readonly<Record<string, string>>;
  /** What no field of the form is about. */
  others: readonly string[];
}

const NONE: Faults = { fields: {}, others: [] };
const Refused = createContext<{ error: unknown; faults: Faults }>({ error: null, faults: NONE });

interface FormProps extends Omit<ComponentProps<'form'>, 'onSubmit' | 'onChange' | 'ref'> {
  /** Checks what was typed, and sends it. */
  onSubmit: () => void;
  /** Why it was refused. */
  error?: unknown;
}

/**
 * A form. What the control plane refuses is shown at its field, until that is changed: a field has the path of what it sends as its name.
 * The rest is shown by `FormError`. After each refusal, and after each that the form itself makes, the first wrong field gets the focus, so
 * that a reader who does not see the page is where something is to be done.
 */
export function Form({ onSubmit, error, ...props }: FormProps) {
  const form = useRef<HTMLFormElement>(null);
  const [faults, setFaults] = useState(NONE);
  const [checks, setChecks] = useState(0);
  useLayoutEffect(() => {
    setFaults(error && form.current ? faultsIn(error, form.current) : NONE);
    if (error) setChecks((before) => before + 1);
  }, [error]);
  useEffect(() => {
    if (checks > 0) form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus();
  }, [checks]);
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    setFaults(NONE);
    setChecks((before) => before + 1);
    onSubmit();
  };
  const forget = ({ target }: ChangeEvent<HTMLFormElement>) => {
    const { [target.name]: fault, ...fields } = faults.fields;
    if (fault !== undefined) setFaults({ ...faults, fields });
  };
  // A button can remove a row: the name of its fields is then that of others.
  const forgetRows = ({ target }: MouseEvent) => {
    if (!(target instanceof HTMLButtonElement) || target.type === 'submit') return;
    setFaults({
      ...faults,
      fields: Object.fromEntries(Object.entries(faults.fields).filter(([name]) => !/\d/.test(name))),
    });
  };
  return (
    <Refused value={{ error, faults }}>
      <form {...props} ref={form} onSubmit={submit} onChange={forget} onClick={forgetRows} />
    </Refused>
  );
}

/** Why the control plane has refused what the form around it has sent. */
export function FormError() {
  const { error, faults } = useContext(Refused);
  if (!error || (faults.others.length === 0 && Object.keys(faults.fields).length === 0)) return null;
  return (
    <ErrorBox error={error}>
      {faults.others
        .filter((words) => words !== messageOf(error))
        .map((words) => (
          <p key={words}>{words}</p>
        ))}
    </ErrorBox>
  );
}

/** Returns what the control plane has refused of the field with this name. */
export function useFault(name: string | undefined): string | undefined {
  const { fields } = useContext(Refused).faults;
  return name === undefined ? undefined : fields[name];
}

function faultsIn(error: unknown, form: HTMLFormElement): Faults {
  const isDetailed = error instanceof ApiError && error.is('VALIDATION_FAILED') && error.body.details.length > 0;
  if (!isDetailed) return { fields: {}, others: [messageOf(error)] };
  const fields: Record<string, string> = {};
  const others: string[] = [];
  for (const { path, message } of error.body.details) {
    const name = fieldOf(path, form);
    if (name === undefined) others.push(path === '' ? message : `${path}: ${message}`);
    else fields[name] = fields[name] === undefined ? message : `${fields[name]}; ${message}`;
  }
  return { fields, others };
}

/** Returns the name of the field that sends what is at a path, such as `command` for `command.0`. */
function fieldOf(path: string, form: HTMLFormElement): string | undefined {
  if (path === '' || form.elements.namedItem(path) !== null) return path || undefined;
  return fieldOf(path.slice(0, Math.max(0, path.lastIndexOf('.'))), form);
}
