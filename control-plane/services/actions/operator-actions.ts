import type { Operator } from '../../domain/caller.js';
import { Refusal, invalidField } from '../../domain/refusal.js';
import type { Tx } from '../../store/store.js';
import { recordAudit } from '../system/audit.js';
import type { Platform } from '../system/platform.js';
import { findInstance, type Instance } from '../instances/queries.js';
import { checkAction } from './stop.js';
import { recordEvent } from '../system/timeline.js';
import { requestStop, requestDestroy } from '../instances/requests.js';

/**
 * Operators: stops a renter's instance as its renter would, at the same charge; the renter reads the reason in the timeline, and
 * may start it again. Refuses with INSTANCE_NOT_FOUND, and with INVALID_STATE where nothing runs.
 */
export function stopForOperator(platform: Platform, operator: Operator, id: string, reason: string): void {
  platform.store.transact((tx) => {
    const instance = getInstance(tx, id);
    checkAction(instance, 'stop');
    recordEvent(tx, id, 'stopped_by_operator', `an operator stops it: ${reason}`);
    requestStop(tx, instance);
    auditInstance(tx, operator, 'instance.stop', instance, reason);
  });
}

/**
 * Operators: destroys a renter's instance from any status but `destroyed`, as its renter would; repeated while `destroying`, its
 * host is told again. The renter reads the reason in the timeline. Refuses with INSTANCE_NOT_FOUND, INVALID_STATE, and with
 * VALIDATION_FAILED without a reason, unless the instance is in error: nobody loses anything with that.
 */
export function destroyForOperator(platform: Platform, operator: Operator, id: string, reason?: string): void {
  platform.store.transact((tx) => {
    const instance = getInstance(tx, id);
    checkAction(instance, 'destroy');
    if (reason === undefined && instance.status !== 'error')
      throw invalidField('reason', `the instance is ${instance.status}: say why, its renter reads it`);
    const why = reason ?? 'nothing on the disk of an instance in error can be reached any more';
    recordEvent(tx, id, 'removed_by_operator', `an operator destroys it: ${why}`);
    requestDestroy(tx, instance);
    auditInstance(tx, operator, 'instance.remove', instance, reason);
  });
}

function getInstance(tx: Tx, id: string): Instance {
  const instance = findInstance(tx, id);
  if (!instance) throw new Refusal('INSTANCE_NOT_FOUND', 'no instance has this id');
  return instance;
}

function auditInstance(tx: Tx, operator: Operator, action: string, instance: Instance, reason?: string): void {
  const { id, organization_id, machine_id, status } = instance;
  const why = reason === undefined ? {} : { reason };
  recordAudit(tx, operator, action, id, { organization_id, machine_id, status, ...why });
}
