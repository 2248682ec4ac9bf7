import { WorkloadState, type Observation } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { instancePorts } from '../../domain/catalogue/template-port.js';
import { workloadLink } from '../../domain/instances/workload-link.js';
import { rowById } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { readTemplateSnapshot } from '../catalogue/stored-template.js';
import { findMachineRow } from '../machines/machines.js';
import type { Instance } from '../instances/queries.js';

/** A host could say anything, and clients write it into their known_hosts files. */
const SSH_HOST_KEY = /^ssh-ed25519 [A-Za-z0-9+/]{68}$/;
const LOWEST_PORT = 1024;

const HIGHEST_PORT = 65_535;

/** Most characters that are kept of a text from a host. */
export const MAX_WORDS_CHARS = 4_000;

export function isAlive({ state }: Pick<Observation, 'state'>): boolean {
  return state === WorkloadState.WORKLOAD_STATE_RUNNING || state === WorkloadState.WORKLOAD_STATE_STARTING;
}

/** Returns when SSH first answered in the observed run, and its host key: what is known already stays. */
export function sshOf(
  tx: Tx,
  { ssh_ready_at, ssh_host_key }: Instance,
  observation: Observation | undefined,
): Pick<Instance, 'ssh_ready_at' | 'ssh_host_key'> {
  const answers =
    observation !== undefined && isAlive(observation) && observation.sshPort > 0 && !observation.sshSilent;
  const key = observation?.sshHostKey ?? '';
  return {
    ssh_ready_at: ssh_ready_at ?? (answers ? tx.now : null),
    ssh_host_key: SSH_HOST_KEY.test(key) ? key : ssh_host_key,
  };
}

/** Returns the addresses of a workload that its host reports; null for invalid ones and those that its template does not have. */
export function addressesOf(
  tx: Tx,
  instance: Instance,
  observation: Observation | undefined,
): Pick<Instance, 'ssh_host' | 'ssh_port' | 'jupyter_url' | 'open_url'> {
  const said = observation?.sshPort ?? 0;
  const port = said >= LOWEST_PORT && said <= HIGHEST_PORT ? said : null;
  const { public_address } = findMachineRow(tx, instance.machine_id);
  const { mode, ports } = readTemplateSnapshot(instance.template_snapshot);
  const home = { publicAddress: public_address, instanceId: instance.id };
  const hasButton = instancePorts(mode, ports).some(({ open_button }) => open_button);
  return {
    ssh_host: port === null ? null : public_address,
    ssh_port: port,
    jupyter_url: mode.includes('jupyter') ? workloadLink(observation?.jupyterUrl ?? '', home) : null,
    open_url: hasButton ? workloadLink(observation?.openUrl ?? '', home) : null,
  };
}

/** Returns the instance that a host names, or undefined if it is not on that host's machine. */
export function findInstanceOfMachine(tx: Tx, machineId: string, instanceId: string): Instance | undefined {
  const instance = tx.get(rowById('instances', instanceId));
  return instance?.machine_id === machineId ? instance : undefined;
}
