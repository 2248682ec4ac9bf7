import { Menu as BaseMenu } from '@base-ui/react/menu';
import { Link, type LinkProps } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { buttonClass } from './button.js';
import styles from '../menu.module.css';

/** A button that opens a list of acts. */
export function Menu({ label, children }: { label: ReactNode; children: ReactNode }) {
  return (
    <BaseMenu.Root modal={false}>
      <BaseMenu.Trigger className={buttonClass('quiet')}>
        {label} <span aria-hidden="true">▾</span>
      </BaseMenu.Trigger>
      <BaseMenu.Portal>
        <BaseMenu.Positioner className={styles.positioner} sideOffset={4} align="end">
          <BaseMenu.Popup className={styles.popup}>{children}</BaseMenu.Popup>
        </BaseMenu.Positioner>
      </BaseMenu.Portal>
    </BaseMenu.Root>
  );
}

/** An act of a menu. */
export function MenuItem({ onClick, children }: { onClick: () => void; children: ReactNode }) {
  return (
    <BaseMenu.Item className={styles.item} onClick={onClick}>
      {children}
    </BaseMenu.Item>
  );
}

/** A page of the console in a menu. */
export function MenuLink({ children, ...link }: LinkProps & { children: ReactNode }) {
  return (
    <BaseMenu.Item className={styles.item} render={<Link {...link} />}>
      {children}
    </BaseMenu.Item>
  );
}

/** Choices of which one is taken, under their name. */
export function MenuChoice<T extends string>(props: {
  label: string;
  value: T | undefined;
  choices: readonly { value: T; label: string }[];
  onChoose: (value: T) => void;
}) {
  const { label, value, choices, onChoose } = props;
  return (
    <BaseMenu.RadioGroup value={value} onValueChange={(chosen) => onChoose(chosen as T)}>
      <BaseMenu.GroupLabel className={styles.label}>{label}</BaseMenu.GroupLabel>
      {choices.map((choice) => (
        <BaseMenu.RadioItem key={choice.value} value={choice.value} className={styles.item} closeOnClick>
          <span className={styles.tick}>{choice.value === value && '✓'}</span>
          {choice.label}
        </BaseMenu.RadioItem>
      ))}
    </BaseMenu.RadioGroup>
  );
}

/** A line between acts that do not belong together. */
export function MenuLine() {
  return <BaseMenu.Separator className={styles.line} />;
}
