import { useLayoutEffect, useRef, useState } from 'react';
import type { Instance } from '../../data/api/models.js';
import { CheckBox } from '../../parts/forms/field.js';
import { CopyButton } from '../../parts/controls/copy.js';
import { Empty, ErrorBox, Skeleton } from '../../parts/controls/states.js';
import styles from './page.module.css';
import { useLogs } from './use-logs.js';

/** How near to its end the reader is who wants to see what comes. */
const NEAR_PX = 40;

/** The output of the workload. It follows as long as the reader is at its end. */
export function LogsTab({ instance }: { instance: Instance }) {
  const { lines, error, readNow } = useLogs(instance.id);
  const [isFollowing, setFollowing] = useState(true);
  const box = useRef<HTMLPreElement>(null);
  useLayoutEffect(() => {
    if (isFollowing && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines, isFollowing]);
  const noteScroll = () => {
    const element = box.current;
    if (element) setFollowing(element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_PX);
  };
  const failure = error !== undefined && <ErrorBox error={error} retry={readNow} />;
  if (lines === undefined) return failure || <Skeleton rows={8} />;
  return (
    <>
      {failure}
      <div className={styles.logHead}>
        <CheckBox
          label="Follow what comes"
          checked={isFollowing}
          onChange={(event) => setFollowing(event.target.checked)}
        />
        <CopyButton label="Copy all" text={lines.join('\n')} />
      </div>
      {lines.length === 0 ? (
        <Empty title="The workload has written nothing yet">
          Here is what it writes to its standard output and standard error, as soon as it has run.
        </Empty>
      ) : (
        <pre ref={box} className={styles.log} tabIndex={0} role="log" aria-label="Output" onScroll={noteScroll}>
          {lines.join('\n')}
        </pre>
      )}
    </>
  );
}
