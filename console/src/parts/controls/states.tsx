import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { remedyOf, type Remedy } from '../../data/api/remedies.js';
import { ApiError } from '../../data/api/api.js';
import { Button } from './button.js';
import styles from '../states.module.css';

/** What a page says that has nothing to show: what it is for, and the button that fills it. */
export function Empty({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className={styles.empty}>
      <h2>{title}</h2>
      {children !== undefined && <p>{children}</p>}
      {action}
    </div>
  );
}

/** How a remedy is led to. The usual one leaves the page, and what was typed into it. */
type RemedyLink = (props: { remedy: Remedy }) => ReactNode;

interface ErrorProps {
  error: unknown;
  retry?: () => void;
  remedyLink?: RemedyLink;
  /** What else is wrong. */
  children?: ReactNode;
}

/** An error: the server's message as it is, what to do, and the id by which an operator finds the request. */
export function ErrorBox({ error, retry, remedyLink: Way = LeavingLink, children }: ErrorProps) {
  const remedy = remedyOf(error);
  const isOfApi = error instanceof ApiError;
  return (
    <div className={styles.error} role="alert">
      <p>{messageOf(error)}</p>
      {children}
      {(remedy !== undefined || retry !== undefined) && (
        <p className={styles.remedies}>
          {remedy && <Way remedy={remedy} />}
          {retry && <Button onClick={retry}>Try again</Button>}
        </p>
      )}
      {isOfApi && error.requestId !== '' && (
        <p className={styles.id}>
          {error.code}, request <code>{error.requestId}</code>
        </p>
      )}
    </div>
  );
}

function LeavingLink({ remedy }: { remedy: Remedy }) {
  return <a href={remedy.href}>{remedy.words}</a>;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Rows that hold the place of what is being read, so that nothing jumps when it comes. */
export function Skeleton({ rows = 3, label = 'Loading' }: { rows?: number; label?: string }) {
  return (
    <div className={styles.skeleton} role="status" aria-label={label}>
      {Array.from({ length: rows }, (_, index) => (
        <span key={index} className={styles.bone} />
      ))}
    </div>
  );
}

/** Shows what a query has read; before, a skeleton; after a failure, the error. What was read before stays, and the error is above it. */
export function Loaded<T>({
  query,
  rows,
  children,
}: {
  query: UseQueryResult<T>;
  rows?: number;
  children: (data: T) => ReactNode;
}) {
  const { data, error, isPending, refetch } = query;
  if (isPending) return <Skeleton {...(rows === undefined ? {} : { rows })} />;
  return (
    <>
      {error && <ErrorBox error={error} retry={() => void refetch()} />}
      {data !== undefined && children(data)}
    </>
  );
}

/** Something to know before an act, or that is about to happen. */
export function Notice({ kind = 'note', children }: { kind?: 'note' | 'warning'; children: ReactNode }) {
  return <div className={kind === 'note' ? styles.note : styles.warning}>{children}</div>;
}

/** Says beside the button of an act that its answer was lost, and that the button does it once. */
export function Unanswered() {
  return (
    <Notice kind="warning">
      No answer came, so perhaps this is done. The same button asks again, and nothing is done twice.
    </Notice>
  );
}
