import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useAct } from '../../../../data/act.js';
import { api } from '../../../../data/api.js';
import { useNow } from '../../../../data/clock.js';
import { Button, LinkButton } from '../../../../parts/button.js';
import { CopyLine } from '../../../../parts/copy.js';
import { Field, Input } from '../../../../parts/field.js';
import { Page, Section } from '../../../../parts/page.js';
import { ErrorBox, Loaded } from '../../../../parts/states.js';
import { Marked } from '../../../../parts/status.js';
import { Table } from '../../../../parts/table.js';
import { At } from '../../../../parts/time.js';
import { gpuWords, machineState } from '../../machine-state.js';
import type { Machine } from '../../models.js';
import styles from '../../operator.module.css';
import { newestMachines } from '../../queries.js';

/** The port on which the control plane listens for hosts unless its settings name another. */
const WIRE_PORT = 8090;
const LOOK_MS = 2_000;

interface Token {
  id: string;
  token: string;
  created_at: string;
  expires_at: string;
}

export default function AddMachinePage() {
  const [address, setAddress] = useState(`${location.hostname}:${WIRE_PORT}`);
  const make = useAct(() => api.post('/v1/operator/enrollment-tokens', { body: {} }), []);
  return (
    <Page title="Add a machine" lead="One line on its host enrolls it. Its owner needs root, and no account here.">
      <div className={styles.narrow}>
        <Field
          label="Address that hosts dial"
          hint={`Host and port at which hosts reach GPURENT_GRPC_ADDRESS. The port is ${WIRE_PORT} unless you have changed it.`}
        >
          {(tied) => <Input {...tied} required value={address} onChange={({ target }) => setAddress(target.value)} />}
        </Field>
      </div>
      {make.data ? (
        <Enrollment token={make.data} address={address.trim()} />
      ) : (
        <>
          <p className={styles.prose}>The token lets one host in, within 24 hours. It is shown only now.</p>
          {make.error && <ErrorBox error={make.error} />}
          <Button kind="main" isBusy={make.isPending} onClick={() => make.mutate()}>
            Make the line to paste
          </Button>
        </>
      )}
    </Page>
  );
}

function Enrollment({ token, address }: { token: Token; address: string }) {
  const revoke = useAct(
    () => api.delete('/v1/operator/enrollment-tokens/{id}', { params: { path: { id: token.id } } }),
    [],
  );
  if (revoke.isSuccess) return <p>The token is revoked: no host can enroll with it.</p>;
  return (
    <>
      <Section title="Paste this on the host, as root, in the folder of the unpacked release">
        <CopyLine
          label="Line to paste"
          text={`scripts/install-agent --control-plane ${shellWord(address)} --token ${token.token}`}
        />
        <p className={styles.note}>
          It works until <At at={token.expires_at} />. It checks the host before it sends the token, and says what to
          mend.
        </p>
        {revoke.error && <ErrorBox error={revoke.error} />}
        <Button isBusy={revoke.isPending} onClick={() => revoke.mutate()}>
          Revoke the token
        </Button>
      </Section>
      <Arrivals since={token.created_at} />
    </>
  );
}

/** Makes a word of a text for a shell, so that nothing in it is a command. */
function shellWord(text: string): string {
  return /^[\w.:[\]-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The machines that have enrolled since the token was made, live. */
function Arrivals({ since }: { since: string }) {
  const query = useQuery({ ...newestMachines, refetchInterval: LOOK_MS });
  return (
    <Section title="Enrolled since then">
      <Loaded query={query} rows={1}>
        {(machines) => {
          const arrived = machines.filter(({ enrolled_at }) => enrolled_at >= since);
          return arrived.length === 0 ? (
            <p role="status">
              <Marked shape="half">Waiting for the host</Marked>
            </p>
          ) : (
            <Arrived machines={arrived} />
          );
        }}
      </Loaded>
    </Section>
  );
}

function Arrived({ machines }: { machines: readonly Machine[] }) {
  const now = useNow(10_000);
  return (
    <Table
      label="Enrolled machines"
      rows={machines}
      keyOf={({ id }) => id}
      columns={[
        { title: 'Machine', cell: ({ name }) => <span className={styles.name}>{name}</span> },
        {
          title: 'State',
          cell: (machine) => {
            const { shape, words } = machineState(machine, now);
            return <Marked shape={shape}>{words}</Marked>;
          },
        },
        { title: 'GPUs', cell: (machine) => <span className={styles.text}>{gpuWords(machine)}</span> },
        {
          title: 'Next',
          cell: ({ id }) => (
            <div className={styles.acts}>
              <LinkButton kind="main" to="/operator/offers" search={{ machine: id }}>
                Make an offer
              </LinkButton>
              <LinkButton to="/operator/machines/$id" params={{ id }}>
                Look at it
              </LinkButton>
            </div>
          ),
        },
      ]}
    />
  );
}
