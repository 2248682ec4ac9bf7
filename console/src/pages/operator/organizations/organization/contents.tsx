import { api } from '../../../../data/api/api.js';
import { ConfirmButton } from '../../../../parts/controls/confirm-button.js';
import { Table } from '../../../../parts/layout/table.js';
import { Ago, At } from '../../../../parts/values/time.js';
import { MachineLink } from '../../links.js';
import styles from '../../operator.module.css';
import { Paged } from '../../paged.js';
import { OPERATED } from '../../queries.js';

/** The API keys of an organization that are in force: what they are called, never what they are. */
export function ApiKeys({ id }: { id: string }) {
  return (
    <Paged
      name={['organization', id, 'api-keys']}
      read={(query, signal) =>
        api.get('/v1/operator/organizations/{id}/api-keys', { params: { path: { id }, query }, signal })
      }
      empty={<p className={styles.weak}>It has no API key.</p>}
    >
      {(keys) => (
        <Table
          label="API keys"
          rows={keys}
          keyOf={(key) => key.id}
          columns={[
            { title: 'Key', cell: ({ name }) => <span className={styles.name}>{name}</span> },
            { title: 'Begins with', cell: ({ prefix }) => <code>{prefix}</code> },
            { title: 'Kind', cell: ({ kind, read_only }) => (read_only ? `${kind}, read-only` : kind) },
            { title: 'Created by', cell: ({ creator_email }) => <span className={styles.text}>{creator_email}</span> },
            { title: 'Last used', cell: ({ last_used_at: at }) => (at === null ? 'never' : <Ago at={at} />) },
          ]}
        />
      )}
    </Paged>
  );
}

/** The templates of an organization, without what they run with. */
export function Templates({ id, owner }: { id: string; owner: string }) {
  return (
    <Paged
      name={['organization', id, 'templates']}
      read={(query, signal) =>
        api.get('/v1/operator/organizations/{id}/templates', { params: { path: { id }, query }, signal })
      }
      empty={<p className={styles.weak}>It has no template of its own.</p>}
    >
      {(templates) => (
        <Table
          label="Templates"
          rows={templates}
          keyOf={(template) => template.id}
          columns={[
            { title: 'Template', cell: ({ name }) => <span className={styles.name}>{name}</span> },
            { title: 'Kind', cell: ({ kind }) => kind },
            { title: 'Who can deploy it', cell: ({ visibility }) => visibility },
            { title: 'Image', cell: ({ image }) => <code className={styles.text}>{image}</code> },
            { title: 'Created', cell: ({ created_at }) => <At at={created_at} /> },
            {
              title: 'Acts',
              cell: (template) => template.visibility === 'public' && <TakeDown template={template} owner={owner} />,
            },
          ]}
        />
      )}
    </Paged>
  );
}

/** Takes a public template of an organization from everybody. */
function TakeDown({ template: { id, name }, owner }: { template: { id: string; name: string }; owner: string }) {
  return (
    <ConfirmButton
      label="Take down"
      about={name}
      title={`Take down ${name} of ${owner}: nobody can deploy it any more`}
      act={() => api.delete('/v1/operator/templates/{id}', { params: { path: { id } } })}
      old={[...OPERATED, ['templates']]}
    >
      <p>
        Nobody can bring it back. Instances of it go on. Members of {owner} read in their audit log that an operator has
        done it.
      </p>
    </ConfirmButton>
  );
}

/** The machines on which an organization has instances. */
export function Machines({ id }: { id: string }) {
  return (
    <Paged
      name={['organization', id, 'machines']}
      read={(query, signal) =>
        api.get('/v1/operator/organizations/{id}/machines', { params: { path: { id }, query }, signal })
      }
      empty={<p className={styles.weak}>It has no instance on any machine.</p>}
    >
      {(machines) => (
        <Table
          label="Machines"
          rows={machines}
          keyOf={(machine) => machine.id}
          columns={[
            {
              title: 'Machine',
              cell: (machine) => <MachineLink machine_id={machine.id} machine_name={machine.name} />,
            },
            { title: 'Region', cell: ({ region }) => region },
            { title: 'Instances', cell: ({ instances }) => instances, isNumber: true },
          ]}
        />
      )}
    </Paged>
  );
}
