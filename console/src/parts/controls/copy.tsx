import { useEffect, useState } from 'react';
import { Button } from './button.js';
import styles from '../copy.module.css';

const SHOWN_MS = 2_000;

interface CopyProps {
  text: string;
  label?: string;
  /** What it copies, for those who hear it among others. */
  about?: string;
}

/** A button that copies a text, and says so. */
export function CopyButton({ text, label = 'Copy', about }: CopyProps) {
  const [outcome, setOutcome] = useState<'copied' | 'refused'>();
  useEffect(() => {
    if (outcome === undefined) return;
    const timer = setTimeout(() => setOutcome(undefined), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setOutcome('copied'),
      () => setOutcome('refused'),
    );
  const words = outcome === undefined ? label : outcome === 'copied' ? 'Copied' : 'Select it by hand';
  const heard = about === undefined || outcome !== undefined ? undefined : `${label}: ${about}`;
  return (
    <Button onClick={() => void copy()} aria-live="polite" aria-label={heard}>
      {words}
    </Button>
  );
}

/** A command or an id, with a button that copies it. */
export function CopyLine({ text, label }: { text: string; label: string }) {
  return (
    <div className={styles.line}>
      <code className={styles.text} tabIndex={0} role="group" aria-label={label}>
        {text}
      </code>
      <CopyButton text={text} />
    </div>
  );
}
