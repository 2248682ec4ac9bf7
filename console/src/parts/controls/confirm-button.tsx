import type { QueryKey } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { useAct } from '../../data/forms/act.js';
import { Button } from './button.js';
import { Confirm } from './dialog.js';

interface Props {
  /** The word on the button, and the verb of the question. */
  label: string;
  /** What the button is about, for those who hear it alone: `Remove: ada@example.com`. */
  about?: string;
  /** What will happen: see {@link Confirm}. */
  title: string;
  kind?: 'main' | 'danger';
  act: () => Promise<unknown>;
  /** The keys of the queries that the act makes old. */
  old: readonly QueryKey[];
  onDone?: () => void;
  /** What follows from it. */
  children: ReactNode;
}

/** A button for an act with a consequence: it asks first, with the consequence as its title, and shows why the act was refused. */
export function ConfirmButton({ label, about, title, kind = 'danger', act, old, onDone, children }: Props) {
  const [isOpen, setOpen] = useState(false);
  const acting = useAct(act, old, () => {
    setOpen(false);
    onDone?.();
  });
  const open = () => {
    acting.reset();
    setOpen(true);
  };
  return (
    <>
      <Button onClick={open} aria-haspopup="dialog" aria-label={about === undefined ? undefined : `${label}: ${about}`}>
        {label}
      </Button>
      <Confirm
        title={title}
        kind={kind}
        isOpen={isOpen}
        error={acting.error}
        verb={label}
        isBusy={acting.isPending}
        onConfirm={() => acting.mutate()}
        onClose={() => setOpen(false)}
      >
        {children}
      </Confirm>
    </>
  );
}
