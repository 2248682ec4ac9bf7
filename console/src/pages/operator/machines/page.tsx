import { getRouteApi, Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { api } from '../../../data/api/api.js';
import { changedSearch } from '../../../data/forms/changed-search.js';
import { useNow } from '../../../data/api/clock.js';
import { LinkButton } from '../../../parts/controls/button.js';
import { Page } from '../../../parts/layout/page.js';
import { Empty } from '../../../parts/controls/states.js';
import { Marked } from '../../../parts/values/status.js';
import { TabLinks } from '../../../parts/layout/tab-links.js';
import { Table } from '../../../parts/layout/table.js';
import { Ago } from '../../../parts/values/time.js';
import { FindForm } from '../find-form.js';
import { isId } from '../ids.js';
import { gpuWords, isSold, machineState } from '../machine-state.js';
import type { Machine } from '../models.js';
import { NeedFilter } from '../need-filter.js';
import { MACHINE_NEEDS } from '../listed-needs.js';
import styles from '../operator.module.css';
import { Paged } from '../paged.js';
import { AgentVersion } from './agent-version.js';
import { filterOf, type MachinesSearch } from './search.js';

const route = getRouteApi('/operator/machines');

export default function MachinesPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { find = '', outdated = false } = search;
  const filter = filterOf(search);
  const add = (
    <LinkButton kind="main" to="/operator/machines/new">
      Add a machine
    </LinkButton>
  );
  return (
    <Page title="Machines" lead="Which machines are there, and how are they?" actions={add}>
      <TabLinks
        label="Machines"
        tabs={[
          {
            title: 'All',
            isActive: !outdated,
            to: '/operator/machines',
            search: changedSearch(search, { outdated: undefined }),
          },
          {
            title: 'With an old agent',
            isActive: outdated,
            to: '/operator/machines',
            search: changedSearch(search, { outdated: true }),
          },
        ]}
      />
      <FindForm
        key={find}
        label="Name or id"
        hint="The beginning of the name, or the whole id."
        value={find}
        onFind={(text) =>
          void (isId(text)
            ? navigate({ to: '/operator/machines/$id', params: { id: text } })
            : navigate({ search: changedSearch(search, { find: text === '' ? undefined : text }) }))
        }
      />
      <NeedFilter
        words={MACHINE_NEEDS}
        value={search.need}
        onChoose={(need) => void navigate({ search: changedSearch(search, { need }) })}
      />
      <Paged
        name={['machines', ...Object.entries(filter).flat().map(String)]}
        read={(query, signal) =>
          api.get('/v1/operator/machines', { params: { query: { ...query, ...filter } }, signal })
        }
        empty={<NoneFound search={search} add={add} />}
      >
        {(machines) => <Machines machines={machines} />}
      </Paged>
    </Page>
  );
}

function NoneFound({ search, add }: { search: MachinesSearch; add: ReactNode }) {
  if (search.find !== undefined || search.need !== undefined)
    return (
      <p role="status">
        No machine is like this: {wordsOf(search)}. <Link to="/operator/machines">Show all machines</Link>
      </p>
    );
  if (search.outdated)
    return <Empty title="No agent is older than the control plane">Nothing is to be upgraded.</Empty>;
  return (
    <Empty title="There is no machine yet" action={add}>
      A machine is enrolled with one line on its host.
    </Empty>
  );
}

/** Says what was looked for. */
function wordsOf({ find, outdated, need }: MachinesSearch): string {
  return [
    find === undefined ? undefined : `a name that begins with “${find}”`,
    outdated ? 'an old agent' : undefined,
    need === undefined ? undefined : MACHINE_NEEDS[need],
  ]
    .filter((each) => each !== undefined)
    .join(', ');
}

function Machines({ machines }: { machines: readonly Machine[] }) {
  const sold = (machine: Machine) => machine.gpus.filter((gpu) => isSold(machine, gpu)).length;
  return (
    <Table
      label="Machines"
      rows={machines}
      keyOf={({ id }) => id}
      isWeak={({ lost }) => lost}
      columns={[
        {
          title: 'Machine',
          cell: ({ id, name, region }) => (
            <>
              <Link className={styles.name} to="/operator/machines/$id" params={{ id }}>
                {name}
              </Link>
              <span className={styles.weak}>{region}</span>
            </>
          ),
        },
        { title: 'State', cell: (machine) => <MachineState machine={machine} /> },
        { title: 'GPUs', cell: (machine) => <span className={styles.text}>{gpuWords(machine)}</span> },
        { title: 'Sold', cell: (machine) => `${sold(machine)} of ${machine.gpus.length}`, isNumber: true },
        { title: 'Last seen', cell: ({ last_seen_at: at }) => (at === null ? 'never' : <Ago at={at} />) },
        { title: 'Agent', cell: (machine) => <AgentVersion machine={machine} /> },
      ]}
    />
  );
}

function MachineState({ machine }: { machine: Machine }) {
  const { shape, words } = machineState(machine, useNow(10_000));
  return (
    <span className={styles.state}>
      <Marked shape={shape}>{words}</Marked>
    </span>
  );
}
