import { Link, type LinkProps } from '@tanstack/react-router';
import type { ComponentProps, ReactNode } from 'react';
import styles from '../button.module.css';
import { classNames } from './class-names.js';

/** `main`: what the page is for; `quiet`: everything else; `plain`: without a frame; `danger`: destroys something. */
type Kind = 'main' | 'quiet' | 'plain' | 'danger';

interface ButtonProps extends ComponentProps<'button'> {
  kind?: Kind;
  /** Shows that the act is under way; the button takes no second click meanwhile, and keeps the focus. */
  isBusy?: boolean;
}

/** A button that does something. */
export function Button({ kind = 'quiet', isBusy = false, className, onClick, children, ...others }: ButtonProps) {
  return (
    <button
      type="button"
      {...others}
      className={classNames(styles.button, styles[kind], className)}
      aria-busy={isBusy || undefined}
      aria-disabled={isBusy || undefined}
      onClick={isBusy ? (event) => event.preventDefault() : onClick}
    >
      {children}
    </button>
  );
}

/** A link that looks like a button: it leads to a page of the console. */
export function LinkButton({ kind = 'quiet', children, ...link }: LinkProps & { kind?: Kind; children: ReactNode }) {
  return (
    <Link {...link} className={classNames(styles.button, styles[kind])}>
      {children}
    </Link>
  );
}

/** Returns the classes of a button, for an element that is none of ours. */
export function buttonClass(kind: Kind = 'quiet'): string {
  return classNames(styles.button, styles[kind]);
}
