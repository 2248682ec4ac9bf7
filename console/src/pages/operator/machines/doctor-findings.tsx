import { Marked } from '../../../parts/values/status.js';
import { Ago } from '../../../parts/values/time.js';
import type { Finding, MachineFindings } from '../models.js';
import styles from '../operator.module.css';

const SHAPES = { failure: 'square', warning: 'ring', ok: 'dot' } as const;

/** What the doctor has found on the host of a machine, each with what its owner can do. */
export function DoctorFindings({ found: { supported, reported_at, findings } }: { found: MachineFindings }) {
  if (!supported)
    return (
      <p className={styles.note}>
        Not reported by this version of its agent. On the host, <code>gpurent-agent doctor</code> prints it.
      </p>
    );
  if (reported_at === null)
    return (
      <p role="status">
        <Marked shape="half">The doctor has not reported yet.</Marked>
      </p>
    );
  const [failures, warnings, fine] = (['failure', 'warning', 'ok'] as const).map((verdict) =>
    findings.filter((finding) => finding.verdict === verdict),
  );
  const bad = [...(failures ?? []), ...(warnings ?? [])];
  return (
    <>
      {bad.length === 0 ? <p>The doctor finds nothing to mend.</p> : <FindingList label="To mend" findings={bad} />}
      {fine && fine.length > 0 && (
        <details>
          <summary>{fine.length === 1 ? '1 check is fine' : `${fine.length} checks are fine`}</summary>
          <FindingList label="Fine" findings={fine} />
        </details>
      )}
      <p className={styles.note}>
        Reported <Ago at={reported_at} /> by <code>gpurent-agent doctor</code>, which also runs on the host itself.
      </p>
    </>
  );
}

function FindingList({ label, findings }: { label: string; findings: readonly Finding[] }) {
  return (
    <ul className={styles.list} aria-label={label}>
      {findings.map(({ check, verdict, what, advice }, index) => (
        <li key={index} className={styles.name}>
          <Marked shape={SHAPES[verdict]}>{verdict}</Marked> {check}: {what}
          {advice !== null && <span className={styles.weak}>{advice}</span>}
        </li>
      ))}
    </ul>
  );
}
