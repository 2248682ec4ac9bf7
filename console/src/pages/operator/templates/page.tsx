import { Link } from '@tanstack/react-router';
import { api } from '../../../data/api/api.js';
import type { Template } from '../../../data/api/models.js';
import { LinkButton } from '../../../parts/controls/button.js';
import { Page } from '../../../parts/layout/page.js';
import { Empty } from '../../../parts/controls/states.js';
import { Table } from '../../../parts/layout/table.js';
import { Ago } from '../../../parts/values/time.js';
import styles from '../operator.module.css';
import { Paged } from '../paged.js';
import { Withdraw } from './withdraw.js';

export default function SystemTemplatesPage() {
  const create = (
    <LinkButton kind="main" to="/operator/templates/new">
      New system template
    </LinkButton>
  );
  return (
    <Page title="System templates" lead="What do you offer to run, to all renters?" actions={create}>
      <Paged
        name={['templates', 'list']}
        read={(query, signal) => api.get('/v1/operator/templates', { params: { query }, signal })}
        empty={
          <Empty title="There is no system template yet" action={create}>
            Renters find nothing to deploy unless they make a template of their own.
          </Empty>
        }
      >
        {(templates) => <Templates templates={templates} />}
      </Paged>
    </Page>
  );
}

function Templates({ templates }: { templates: readonly Template[] }) {
  return (
    <Table
      label="System templates"
      rows={templates}
      keyOf={({ id }) => id}
      columns={[
        {
          title: 'Template',
          cell: ({ id, name, description }) => (
            <>
              <Link className={styles.name} to="/operator/templates/$id" params={{ id }}>
                {name}
              </Link>
              <span className={styles.weak}>{description}</span>
            </>
          ),
        },
        { title: 'Image', cell: ({ image }) => <code className={styles.text}>{image}</code> },
        { title: 'Kind', cell: ({ kind }) => (kind === 'vm' ? 'virtual machine' : 'container') },
        { title: 'Listed as', cell: (template) => listedAs(template) },
        { title: 'Since', cell: ({ created_at }) => <Ago at={created_at} /> },
        { title: 'Acts', cell: (template) => <Withdraw template={template} /> },
      ]}
    />
  );
}

function listedAs({ recommended, coming_soon }: Template): string {
  return [...(recommended ? ['recommended'] : []), ...(coming_soon ? ['coming soon'] : [])].join(', ');
}
