import type { Instance } from '../../api/index.js';
import { CliError } from '../errors/cli-error.js';
import { EXIT } from '../errors/exit-codes.js';
import { isId, nameOf } from '../instances/find.js';

/** How the SSH server of an instance is reached. Each value is safe as an argument of ssh and in its configuration. */
export interface SshTarget {
  /** The name under which ssh looks for its host key: the address and the port can be those of another instance tomorrow. */
  alias: string;
  host: string;
  port: number;
  user: string;
  /** Null: the host cannot tell. */
  hostKey: string | null;
}

const HOST = /^[A-Za-z0-9:][A-Za-z0-9.:-]{0,252}$/;
const USER = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/;
const HOST_KEY = /^(ssh|ecdsa|sk)-[A-Za-z0-9@.-]{1,64} [A-Za-z0-9+/]{16,2048}={0,3}$/;

/** Throws a CliError if the instance has no SSH now, or if what the control plane says of it could mean something else to ssh. */
export function sshTarget(instance: Instance): SshTarget {
  const { id, status, ssh_host: host, ssh_port: port, ssh_user: user, ssh_host_key: hostKey } = instance;
  const name = nameOf(instance);
  if (status !== 'running') {
    const advice = status === 'stopped' ? `Start it: gpurent start ${id}` : `See how it goes on: gpurent show ${id}`;
    throw new CliError(EXIT.refused, `${name} is ${status}: SSH needs a running instance`, advice);
  }
  if (host === null || port === null)
    throw new CliError(
      EXIT.refused,
      `${name} has no SSH address yet`,
      `Repeat the command in a moment, or see gpurent show ${id}`,
    );
  // The id becomes the name of a file, and all of it lines of a configuration that can run programs.
  const isSafe = isId(id) && isPort(port) && HOST.test(host) && USER.test(user);
  if (!isSafe || (hostKey !== null && !HOST_KEY.test(hostKey)))
    throw new CliError(
      EXIT.failed,
      `the SSH address of ${name} is malformed`,
      'Ask the operator of the control plane.',
    );
  return { alias: `gpurent-${id}`, host, port, user, hostKey };
}

/** Tells whether this is a port. A control plane that lies could send anything. */
const isPort = (port: unknown): boolean => Number.isInteger(port) && Number(port) > 0 && Number(port) < 65_536;

/** Returns the name of an instance in an SSH configuration: `gpurent-` and its label, as far as ssh takes it. */
export function hostNameOf({ id, label }: Pick<Instance, 'id' | 'label'>): string {
  const named = (label ?? '').replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[.-]+|-+$/g, '');
  return `gpurent-${named || id.slice(0, 8)}`;
}
