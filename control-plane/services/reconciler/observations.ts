import { WorkloadState, type Observation } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { instancePorts } from '../../domain/template-port.js';
import { workloadLink } from '../../domain/workload-link.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { readTemplateSnapshot } from '../catalogue/stored-template.js';
import { findMachineRow } from '../machines/machines.js';
import type { Instance } from '../instances/queries.js';

const LOWEST_PORT = 1024;

const HIGHEST_PORT = 65_535;

/** What of a host's words is kept. */
export const MAX_WORDS_CHARS = 4_000;

export function isAlive({ state }: Pick<Observation, 'state'>): boolean {
  return state === WorkloadState.WORKLOAD_STATE_RUNNING || state === WorkloadState.WORKLOAD_STATE_STARTING;
}

/** Since when SSH has answered in the run that is observed: what was known of the same run stays. */
export function sshOf(
  tx: Tx,
  { ssh_ready_at }: Instance,
  observation: Observation | undefined,
): Pick<Instance, 'ssh_ready_at'> {
  const answers =
    observation !== undefined && isAlive(observation) && observation.sshPort > 0 && !observation.sshSilent;
  return { ssh_ready_at: ssh_ready_at ?? (answers ? tx.now : null) };
}

/** Where the workload is reached, as its host says; what cannot be an address, or is none of its template's, is none. */
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

/** The instance that a host speaks of, if it is one of that host's own. */
export function findInstanceOfMachine(tx: Tx, machineId: string, instanceId: string): Instance | undefined {
  return tx.get(
    query.selectFrom('instances').selectAll().where('id', '=', instanceId).where('machine_id', '=', machineId),
  );
}
