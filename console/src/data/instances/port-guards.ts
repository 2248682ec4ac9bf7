import type { Template } from '../api/models.js';

type Guard = Template['ports'][number]['guard'];

/** What checks the access token at a port. */
export const GUARDS: Readonly<Record<Guard, string>> = {
  proxy: 'the host asks for the access token',
  bearer: 'the workload itself asks for the access token',
  none: 'open to everybody',
};
