import { anOperator } from '../../domain/act.js';
import type { Operator } from '../../domain/caller.js';
import type { OperatorAct } from '../../domain/operator-act.js';
import { Refusal, invalidField } from '../../domain/refusal.js';
import type { Tx } from '../../store/store.js';
import { recordAudit } from '../system/audit.js';
import type { Core } from '../system/platform.js';
import { findInstance, type Instance } from '../instances/queries.js';
import { checkAction } from './stop.js';
import { requestStop, requestDestroy } from '../instances/requests.js';

/**
 * Stops a renter's instance for an operator, with the same effect and charges as a stop by its renter, who reads the reason in the
 * timeline and can start it again. Refuses with INSTANCE_NOT_FOUND, and with INVALID_STATE unless the instance is `running`.
 */
export function stopForOperator(core: Core, operator: Operator, id: string, reason: string): void {
  core.store.transact((tx) => {
    const instance = getInstance(tx, id);
    checkAction(instance, 'stop');
    const message = `an operator stops this instance: ${reason}`;
    requestStop(tx, instance, { kind: 'stopped_by_operator', message }, anOperator(reason));
    auditInstance(tx, operator, 'instance.stop', instance, reason);
  });
}

/**
 * Destroys a renter's instance for an operator, from any status but `destroyed`, with the same effect as a destroy by its renter, who
 * reads the reason in the timeline. Refuses with INSTANCE_NOT_FOUND, INVALID_STATE, and with VALIDATION_FAILED without a reason,
 * unless the instance is in `error`, where the renter can no longer reach its disk.
 */
export function destroyForOperator(core: Core, operator: Operator, id: string, reason?: string): void {
  core.store.transact((tx) => {
    const instance = getInstance(tx, id);
    checkAction(instance, 'destroy');
    if (reason === undefined && instance.status !== 'error')
      throw invalidField('reason', `is required because the instance is ${instance.status}; its renter reads it`);
    const why = reason ?? 'it is in error, and its disk can no longer be reached';
    const message = `an operator destroys this instance: ${why}`;
    requestDestroy(tx, instance, { kind: 'removed_by_operator', message }, anOperator(why));
    auditInstance(tx, operator, 'instance.remove', instance, reason);
  });
}

function getInstance(tx: Tx, id: string): Instance {
  const instance = findInstance(tx, id);
  if (!instance) throw new Refusal('INSTANCE_NOT_FOUND', 'no instance has this id');
  return instance;
}

function auditInstance(tx: Tx, operator: Operator, action: OperatorAct, instance: Instance, reason?: string): void {
  const { id, organization_id, machine_id, status } = instance;
  const why = reason === undefined ? {} : { reason };
  recordAudit(tx, operator, action, id, { organization_id, machine_id, status, ...why });
}
