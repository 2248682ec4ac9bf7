import { actorOf } from '../../domain/act.js';
import { keyIdOf, type Caller } from '../../domain/caller.js';
import type { EnvEntry } from '../../domain/instances/environment.js';
import type { InstanceLimits } from '../../domain/money/instance-limits.js';
import { findPayer } from '../billing/limits/payer.js';
import { settleOrganizations } from '../billing/settle/settle.js';
import { recordAct } from '../system/acts.js';
import type { Platform } from '../system/platform.js';
import { recordCommand } from '../instances/commands.js';
import { findReplayed, idempotencyOf, remember } from '../instances/idempotency.js';
import { insertInstance } from '../instances/new-instance.js';
import { checkStopTime } from './change-instance.js';
import { checkDeploy, planDeploy } from './deploy-checks.js';
import { describeInstance, type InstanceDetails } from './instance-details.js';
import { failUntried, findSlowImage } from '../instances/slow-images.js';
import { recordTransition } from '../events/timeline.js';

export interface DeployRequest extends Partial<InstanceLimits> {
  offer_id: string;
  template_id: string;
  disk_gb: number;
  label: string | null;
  ssh_key_id: string | null;
  env_overrides: EnvEntry[];
  max_gpu_per_hour_micro?: number | null;
  max_disk_per_hour_micro?: number | null;
}

/**
 * Rents an offer. Checks the refusals of API rule 18 in their order, then claims the GPUs and records the instance and its provision
 * command, all in one transaction. A refusal stores and charges nothing (API rule 19). The same request with the same idempotency
 * key within 24 hours returns the present state of the first instance. A deploy of an image that was recently too slow on this machine, or on two, is
 * accepted, and its instance goes to `error` in the same transaction.
 */
export function deploy(
  platform: Platform,
  caller: Caller,
  request: DeployRequest,
  idempotencyKey?: string,
): { instance: InstanceDetails; replayed: boolean } {
  const idempotency =
    idempotencyKey === undefined ? undefined : idempotencyOf(caller.organizationId, idempotencyKey, request);
  return platform.store.transact((tx) => {
    settleOrganizations(platform, tx, [caller.organizationId]);
    const replayed = idempotency && findReplayed(tx, idempotency);
    if (replayed) return { instance: describeInstance(platform, tx, replayed), replayed: true };
    checkStopTime(request.stop_at, tx.now);
    const planned = planDeploy(platform, tx, caller, request, findPayer(tx, caller));
    const { template, offer, sshKey, gpus } = checkDeploy(planned);

    const owner = {
      organizationId: caller.organizationId,
      deployedBy: deployedBy(caller),
      apiKeyId: keyIdOf(caller),
    };
    const instance = insertInstance(platform, tx, owner, { request, template, offer, sshKey, gpus });
    const message = `deployed on ${offer.machine.name} with ${offer.num_gpus} GPU(s)`;
    recordTransition(tx, instance, null, { kind: 'created', message });
    recordAct(tx, caller.organizationId, actorOf(caller), 'instance.deploy', `instances/${instance.id}`);
    if (idempotency) remember(tx, idempotency, instance.id);
    const accepted = describeInstance(platform, tx, instance);
    const slow = findSlowImage(tx, caller.organizationId, template.image, offer.machine.id);
    if (slow) failUntried(tx, instance, slow);
    else recordCommand(tx, instance, 'provision');
    return { instance: accepted, replayed: false };
  });
}

function deployedBy(caller: Caller): string {
  if (caller.kind === 'session') return caller.email;
  return caller.keyKind === 'team' ? `${caller.name} (${caller.prefix}…)` : caller.creatorEmail;
}
