import type { paths } from '../../../../client/api/index.js';
import type { Template } from '../../data/api/models.js';

type NewTemplate = paths['/v1/templates']['post']['requestBody']['content']['application/json'];
/** What a template runs, without who may see it. */
export type TemplateContent = Omit<NewTemplate, 'visibility'>;
type Port = Template['ports'][number];
type Variable = Template['env'][number];

/** Whose template it is: one of an organization, or of the operator, for all. */
export type Owner = 'organization' | 'operator';

/** A row of the form. The key tells React which one it is. */
export interface PortRow extends Omit<Port, 'port'> {
  rowKey: number;
  port: string;
}
export interface VariableRow extends Omit<Variable, 'value'> {
  rowKey: number;
  value: string;
  /** Whether the control plane keeps a secret value, which nobody can read; an empty field leaves it as it is. */
  isKept: boolean;
}

/** What stands in the form of a template: texts as they are typed. */
export interface Draft {
  name: string;
  description: string;
  image: string;
  kind: Template['kind'];
  mode: Template['mode'];
  /** Of a template of an organization. */
  visibility: 'organization' | 'public';
  /** Of a system template. */
  recommended: boolean;
  coming_soon: boolean;
  ssh_user: string;
  cuda_min: string;
  cuda_max: string;
  /** One argument a line. */
  command: string;
  onstart: string;
  readme: string;
  env: readonly VariableRow[];
  ports: readonly PortRow[];
  /** `keep`: as it was; `none`: the registry asks for none. */
  registry: { choice: 'keep' | 'none' | 'given'; username: string; password: string };
}

let rows = 0;

export function newPort(): PortRow {
  return { rowKey: ++rows, port: '', protocol: 'http', label: '', open_button: false, guard: 'proxy' };
}

export function newVariable(): VariableRow {
  return { rowKey: ++rows, key: '', value: '', secret: false, isKept: false };
}

type Content = Pick<
  Template,
  'name' | 'description' | 'image' | 'kind' | 'mode' | 'visibility' | 'ssh_user' | 'cuda_min' | 'cuda_max' | 'command'
> &
  Pick<Template, 'onstart' | 'readme' | 'env' | 'ports' | 'registry_private' | 'recommended' | 'coming_soon'>;

const EMPTY: Content = {
  name: '',
  description: '',
  image: '',
  kind: 'container',
  mode: ['ssh'],
  visibility: 'organization',
  ssh_user: 'root',
  cuda_min: null,
  cuda_max: null,
  command: [],
  onstart: null,
  readme: null,
  env: [],
  ports: [],
  registry_private: false,
  recommended: false,
  coming_soon: false,
};

/** Returns the draft of a template; without one, that of a new one. */
export function draftOf(template?: Template): Draft {
  const { name, description, image, kind, mode, visibility, ssh_user, ...rest }: Content = template ?? EMPTY;
  return {
    name,
    description,
    image,
    kind,
    mode: [...mode],
    ssh_user,
    visibility: visibility === 'public' ? 'public' : 'organization',
    recommended: rest.recommended,
    coming_soon: rest.coming_soon,
    cuda_min: rest.cuda_min ?? '',
    cuda_max: rest.cuda_max ?? '',
    command: rest.command.join('\n'),
    onstart: rest.onstart ?? '',
    readme: rest.readme ?? '',
    env: rest.env.map(({ value, ...variable }) => ({
      ...variable,
      rowKey: ++rows,
      value: value ?? '',
      isKept: variable.secret && value === null,
    })),
    ports: rest.ports.map((port) => ({
      ...port,
      rowKey: ++rows,
      port: String(port.port),
    })),
    registry: {
      choice: rest.registry_private ? 'keep' : 'none',
      username: '',
      password: '',
    },
  };
}

/** What is wrong with a draft, by the field; the control plane finds the rest. */
export type Faults = Partial<Record<'name' | 'image' | 'registry' | `env.${number}` | `ports.${number}`, string>>;

/** What each group of fields is given: what stands in the form, what is wrong with it, and how it changes. */
export interface FieldsProps {
  draft: Draft;
  faults: Faults;
  change: (fields: Partial<Draft>) => void;
}

export function faultsOf(draft: Draft): Faults {
  const faults: Faults = {};
  if (draft.name.trim() === '') faults.name = 'Give the template a name.';
  if (draft.image.trim() === '') faults.image = 'Give an image, such as registry.example.com/name:tag.';
  if (draft.registry.choice === 'given' && (draft.registry.username === '' || draft.registry.password === ''))
    faults.registry = 'Give the user name and the password of the registry.';
  for (const { rowKey, key, value } of draft.env)
    if (key === '' && value !== '') faults[`env.${rowKey}`] = 'Give the variable a name.';
  for (const { rowKey, port } of draft.ports) {
    const number = /^\d{1,5}$/.test(port) ? Number(port) : 0;
    if (number < 1 || number > 65_535) faults[`ports.${rowKey}`] = 'Give a number from 1 to 65535.';
  }
  return faults;
}

/** Returns what to send. A command that was not touched is sent as it was: its arguments can have more than one line. */
export function contentOf(draft: Draft, before?: Template): TemplateContent {
  const { name, image, description, kind, mode, ssh_user, registry } = draft;
  const lines = draft.command.split('\n').filter((line) => line !== '');
  const command = before?.command.join('\n') === draft.command ? before.command : lines;
  return {
    name: name.trim(),
    image: image.trim(),
    description,
    kind,
    mode,
    ssh_user,
    command,
    cuda_min: draft.cuda_min.trim() || null,
    cuda_max: draft.cuda_max.trim() || null,
    onstart: draft.onstart || null,
    readme: draft.readme || null,
    env: draft.env.filter(isSent).map(({ key, value, secret, isKept }) => ({
      key,
      secret,
      value: secret && isKept && value === '' ? null : value,
    })),
    ports: draft.ports.map(({ port, protocol, label, open_button, guard }) => ({
      protocol,
      label,
      open_button,
      guard,
      port: Number(port),
    })),
    ...registryOf(registry),
  };
}

/** Tells whether a row is sent: nobody has filled in the others. */
export function isSent({ key }: VariableRow): boolean {
  return key !== '';
}

function registryOf({ choice, username, password }: Draft['registry']): Pick<TemplateContent, 'registry'> {
  if (choice === 'keep') return {};
  return { registry: choice === 'none' ? null : { username, password } };
}
