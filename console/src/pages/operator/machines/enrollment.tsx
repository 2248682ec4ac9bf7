import { useState } from 'react';
import { useAct } from '../../../data/forms/act.js';
import { api } from '../../../data/api/api.js';
import { Button } from '../../../parts/controls/button.js';
import { CopyLine } from '../../../parts/controls/copy.js';
import { Field, Input } from '../../../parts/forms/field.js';
import { Section } from '../../../parts/layout/page.js';
import { ErrorBox } from '../../../parts/controls/states.js';
import { At } from '../../../parts/values/time.js';
import type { EnrollmentToken } from '../models.js';
import styles from '../operator.module.css';
import { OPERATED } from '../queries.js';

/** Where the control plane listens for hosts unless its settings name another port. */
const GRPC_PORT = 8090;

/**
 * The line that enrolls a host with a token; of a machine, also the line for a host that does not know any more which machine it is. Where the
 * control plane does not know its own address, the operator corrects a guess.
 */
export function Enrollment({ token }: { token: EnrollmentToken }) {
  const [address, setAddress] = useState(token.grpc_address ?? `${location.hostname}:${GRPC_PORT}`);
  const revoke = useAct(
    () => api.delete('/v1/operator/enrollment-tokens/{id}', { params: { path: { id: token.id } } }),
    OPERATED,
  );
  const { install } = token;
  const line = `scripts/install-agent --control-plane ${shellWord(address.trim())} --token ${token.token}`;
  if (revoke.isSuccess) return <p>The token is revoked: no host can enroll with it.</p>;
  return (
    <>
      {install && <OneLine install={install} token={token} />}
      <Section
        title={
          install
            ? 'Or, in the folder of a release that you have unpacked on the host'
            : 'Paste this on the host, as root, in the folder of the unpacked release'
        }
      >
        {token.grpc_address === null && (
          <div className={styles.narrow}>
            <Field
              label="Address that hosts dial"
              hint="A guess: correct it here, or set GPURENT_PUBLIC_GRPC_ADDRESS on the control plane."
            >
              {(tied) => (
                <Input {...tied} required value={address} onChange={({ target }) => setAddress(target.value)} />
              )}
            </Field>
          </div>
        )}
        <CopyLine label="Line to paste" text={token.machine_id === null ? line : `${line} --again`} />
        {token.machine_id !== null && (
          <>
            <p className={styles.note}>If the host has lost /var/lib/gpurent-agent:</p>
            <CopyLine label="Line for a host that has lost its state" text={line} />
          </>
        )}
        <p className={styles.note}>
          It works until <At at={token.expires_at} />, and is shown only now. It checks the host before it sends the
          token, and says what to mend.
        </p>
        {revoke.error && <ErrorBox error={revoke.error} />}
        <Button isBusy={revoke.isPending} onClick={() => revoke.mutate()}>
          Revoke the token
        </Button>
      </Section>
    </>
  );
}

/** The line for a host that has nothing yet. The token is no part of it, so that no list of processes on the host shows it. */
function OneLine({ install, token }: { install: NonNullable<EnrollmentToken['install']>; token: EnrollmentToken }) {
  const options = `--sha256 ${install.sha256}${token.machine_id === null ? '' : ' -- --again'}`;
  return (
    <Section title="Paste this on the host, as root">
      <CopyLine label="Line that installs the agent" text={`curl -fsSL ${install.url} | sh -s -- ${options}`} />
      <p className={styles.note}>It asks for this token:</p>
      <CopyLine label="Enrollment token" text={token.token} />
      <p className={styles.note}>To read the script before you run it:</p>
      <CopyLine
        label="Lines that load the script and then run it"
        text={`curl -fsSLo install-gpurent ${install.url} && less install-gpurent && sh install-gpurent ${options}`}
      />
    </Section>
  );
}

/** Makes a word of a text for a shell, so that nothing in it is a command. */
function shellWord(text: string): string {
  return /^[\w.:[\]-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
