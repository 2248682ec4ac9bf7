import type { ReactNode } from 'react';
import type { InstanceStatus } from '../../data/api/models.js';
import { classNames } from '../controls/class-names.js';
import styles from '../status.module.css';

/** Shapes differ, so that nobody needs the colour: dot, ring, turning half, square, dash. */
type Shape = 'dot' | 'ring' | 'half' | 'square' | 'dash';

const SHAPES: Readonly<Record<InstanceStatus, Shape>> = {
  running: 'dot',
  stopped: 'ring',
  error: 'square',
  destroyed: 'dash',
  creating: 'half',
  starting: 'half',
  stopping: 'half',
  destroying: 'half',
} as const;

/** The status of an instance: a shape and its word. */
export function Status({ status }: { status: InstanceStatus }) {
  return <Marked shape={SHAPES[status]}>{status}</Marked>;
}

/** The state of something else: a shape and its words. */
export function Marked({ shape, children }: { shape: Shape; children: ReactNode }) {
  return (
    <span className={styles.status}>
      <Mark shape={shape} />
      {children}
    </span>
  );
}

/** The shape of a status without its word, which stands beside it. */
function Mark({ shape }: { shape: Shape }) {
  return <span className={classNames(styles.mark, styles[shape])} aria-hidden="true" />;
}
