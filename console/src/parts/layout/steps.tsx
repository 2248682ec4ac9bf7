import { useId, type ReactNode } from 'react';
import { classNames } from '../controls/class-names.js';
import styles from '../steps.module.css';

/** Something to be done after what stands before it. */
export interface Task {
  title: string;
  isDone: boolean;
  words: ReactNode;
  /** Its button, of the given kind; absent: it is done elsewhere. */
  button?: (kind: 'main' | 'quiet') => ReactNode;
}

/** What is done one after the other, each step with its button. The first that is not done is the next. */
export function Steps({ title, tasks }: { title: ReactNode; tasks: readonly Task[] }) {
  const id = useId();
  const next = tasks.find(({ isDone }) => !isDone);
  return (
    <section className={styles.box} aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <ol className={styles.steps}>
        {tasks.map((task, index) => (
          <Step key={task.title} task={task} number={index + 1} isNext={task === next} />
        ))}
      </ol>
    </section>
  );
}

function Step({ task, number, isNext }: { task: Task; number: number; isNext: boolean }) {
  const { title, isDone, words, button } = task;
  return (
    <li className={styles.step} aria-current={isNext ? 'step' : undefined}>
      <span className={classNames(styles.number, isDone && styles.done)} aria-hidden="true">
        {isDone ? '✓' : number}
      </span>
      <div className={styles.words}>
        <h3>
          {title}
          {isDone && <span className={styles.state}> done</span>}
        </h3>
        <div>{words}</div>
      </div>
      {!isDone && button?.(isNext ? 'main' : 'quiet')}
    </li>
  );
}
