import type { EnvEntry } from '../../domain/instances/environment.js';
import type { TemplatePort } from '../../domain/catalogue/template-port.js';
import { readStored, readStoredList } from '../../store/stored-json.js';
import type { Encryption } from '../secrets/encryption.js';
import type { Row } from '../../store/schema.js';

export type TemplateMode = 'ssh' | 'jupyter';

export interface RegistryCredential {
  username: string;
  password: string;
}

/** A template as its readers see it: secret values are null. */
export interface TemplateDetails {
  id: string;
  hash_id: string;
  name: string;
  description: string;
  readme: string | null;
  visibility: Row<'templates'>['visibility'];
  /** The name of the organization that owns a public template; otherwise null. */
  publisher: string | null;
  /** Whether the organization that reads it has made it; absent in instances, and for operators. */
  is_own?: boolean;
  kind: Row<'templates'>['kind'];
  mode: TemplateMode[];
  image: string;
  arch: string;
  cuda_max: string | null;
  cuda_min: string | null;
  ssh_user: string;
  env: EnvEntry[];
  onstart: string | null;
  command: string[];
  ports: TemplatePort[];
  uses_access_token: boolean;
  coming_soon: boolean;
  recommended: boolean;
  registry_private: boolean;
  deactivated_at: number | null;
  created_at: number;
}

const PORT: TemplatePort = { port: 0, protocol: 'http', label: '', open_button: false, guard: 'proxy' };
const ENTRY: EnvEntry = { key: '', value: null, secret: false };
const REGISTRY: RegistryCredential = { username: '', password: '' };
const TEMPLATE: TemplateDetails = {
  id: '',
  hash_id: '',
  name: '',
  description: '',
  readme: null,
  visibility: 'organization',
  publisher: null,
  kind: 'container',
  mode: [],
  image: '',
  arch: '',
  cuda_max: null,
  cuda_min: null,
  ssh_user: 'root',
  env: [],
  onstart: null,
  command: [],
  ports: [],
  uses_access_token: false,
  coming_soon: false,
  recommended: false,
  registry_private: false,
  deactivated_at: null,
  created_at: 0,
};

/** Most bytes of the copy of a template that an instance keeps once it is destroyed. Its description and ports take up to 6,500. */
const KEPT_BYTES = 8192;

/** Returns the copy of a template that an instance keeps once it is destroyed, for good: a long one without command and environment. */
export function abridgeSnapshot(text: string): string {
  if (Buffer.byteLength(text) <= KEPT_BYTES) return text;
  return JSON.stringify({ ...(JSON.parse(text) as TemplateDetails), command: [], env: [] });
}

/** Parses the copy of a template that an instance keeps from its deploy. */
export function readTemplateSnapshot(text: string): TemplateDetails {
  const template = readStored(TEMPLATE, JSON.parse(text));
  return { ...template, env: readStoredList(ENTRY, template.env), ports: readStoredList(PORT, template.ports) };
}

export function readPorts(text: string): TemplatePort[] {
  return readStoredList(PORT, JSON.parse(text));
}

/** Decrypts the environment of a template, secret values included. */
export function openEnvironment(encryption: Encryption, sealed: Buffer): EnvEntry[] {
  return readStoredList(ENTRY, encryption.decrypt('template.env', sealed));
}

/** Decrypts the registry credential of a template; undefined if it has none. */
export function openRegistry(encryption: Encryption, sealed: Buffer | null): RegistryCredential | undefined {
  return sealed === null ? undefined : readStored(REGISTRY, encryption.decrypt('template.registry', sealed));
}
