/** Which machine, what is to run on it, and which GPUs the list of machines is to have. */
export interface DeploySearch {
  offer?: string;
  template?: string;
  gpu?: string;
}

const ID = /^[0-9a-f-]{36}$/i;
const LONGEST = 200;

/** Reads the address; what is no id or no name is left out. */
export function deploySearch({ offer, template, gpu }: Record<string, unknown>): DeploySearch {
  const isName = typeof gpu === 'string' && gpu !== '' && gpu.length <= LONGEST;
  return { ...idOf('offer', offer), ...idOf('template', template), ...(isName ? { gpu } : {}) };
}

function idOf<Name extends string>(name: Name, value: unknown): Partial<Record<Name, string>> {
  return typeof value === 'string' && ID.test(value) ? ({ [name]: value } as Record<Name, string>) : {};
}
