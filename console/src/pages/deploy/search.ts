/** Which machine, and what is to run on it. */
export interface DeploySearch {
  offer?: string;
  template?: string;
}

const ID = /^[0-9a-f-]{36}$/i;

/** Reads the address; what is no id is left out. */
export function deploySearch({ offer, template }: Record<string, unknown>): DeploySearch {
  return { ...idOf('offer', offer), ...idOf('template', template) };
}

function idOf<Name extends string>(name: Name, value: unknown): Partial<Record<Name, string>> {
  return typeof value === 'string' && ID.test(value) ? ({ [name]: value } as Record<Name, string>) : {};
}
