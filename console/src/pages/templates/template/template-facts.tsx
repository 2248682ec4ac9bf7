import type { ReactNode } from 'react';
import type { Template } from '../../../data/api/models.js';
import { makerOf } from '../../../data/instances/templates.js';
import { CopyLine } from '../../../parts/controls/copy.js';
import { Section } from '../../../parts/layout/page.js';
import { Table } from '../../../parts/layout/table.js';
import { Ago } from '../../../parts/values/time.js';
import { GUARDS } from '../../../data/instances/port-guards.js';
import styles from './template-facts.module.css';

/** Everything that a template runs. */
export function TemplateFacts({ template }: { template: Template }) {
  const { image, env, ports, command, onstart } = template;
  return (
    <>
      <Section title="What it runs">
        <CopyLine label="Image" text={image} />
        <dl className={styles.facts}>
          {factsOf(template).map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
        {command.length > 0 && <Script name="Command" text={command.map(quoted).join(' ')} />}
        {onstart !== null && onstart !== '' && <Script name="At each start" text={onstart} />}
      </Section>
      {ports.length > 0 && (
        <Section title="Ports">
          <Table
            label="Ports"
            columns={[
              { title: 'Port', cell: ({ port, protocol }) => `${port}/${protocol}` },
              { title: 'Name', cell: ({ label, open_button }) => label + (open_button ? ' (the open button)' : '') },
              { title: 'Access', cell: ({ guard }) => GUARDS[guard] },
            ]}
            rows={ports}
            keyOf={({ port, protocol }) => `${port}/${protocol}`}
          />
        </Section>
      )}
      {env.length > 0 && (
        <Section title="Environment">
          <Table
            label="Environment"
            columns={[
              { title: 'Name', cell: ({ key }) => <code>{key}</code> },
              { title: 'Value', cell: ({ value, secret }) => <Value value={value} secret={secret} /> },
            ]}
            rows={env}
            keyOf={({ key }) => key}
          />
        </Section>
      )}
    </>
  );
}

function factsOf(template: Template): [string, ReactNode][] {
  const { kind, mode, ssh_user, cuda_min, cuda_max, registry_private, uses_access_token, created_at } = template;
  return [
    ['Kind', kind === 'vm' ? 'virtual machine' : 'container'],
    ['Beside the command', mode.length === 0 ? 'nothing' : mode.join(', ')],
    ['User', <code key="user">{ssh_user}</code>],
    ['CUDA', cudaOf(cuda_min, cuda_max)],
    ['Registry', registry_private ? 'asks for a password, which is kept' : 'asks for no password'],
    ['Access token', uses_access_token ? 'each instance has one' : 'none'],
    ['Since', <Ago key="since" at={created_at} />],
    ['Made', makerOf(template)],
  ];
}

function cudaOf(least: string | null, most: string | null): string {
  if (least !== null && most !== null) return `${least} to ${most}`;
  if (least !== null) return `${least} or newer`;
  return most === null ? 'any version' : `at most ${most}`;
}

/** Quotes an argument in which there is more than a plain word, so that one can tell where it ends. */
function quoted(argument: string): string {
  return /^[\w./:=@%+,-]+$/.test(argument) ? argument : JSON.stringify(argument);
}

function Value({ value, secret }: { value: string | null; secret: boolean }) {
  if (value === null)
    return <span className={styles.hidden}>{secret ? 'secret: never shown' : 'not shown to you'}</span>;
  return <code className={styles.value}>{value}</code>;
}

function Script({ name, text }: { name: string; text: string }) {
  return (
    <figure className={styles.script}>
      <figcaption>{name}</figcaption>
      <pre tabIndex={0}>{text}</pre>
    </figure>
  );
}
