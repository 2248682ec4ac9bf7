import { chargedPerHourMicro, diskPerHourMicro, type Rates } from '../../domain/money/burn.js';
import type { Caller } from '../../domain/caller.js';
import { driverFit, wordsOfUnmet } from '../../domain/catalogue/image-requirement.js';
import type { InstanceStatus } from '../../domain/instances/instance-state.js';
import { Refusal } from '../../domain/refusal.js';
import type { Metered } from '../../domain/money/metered.js';
import { lastsUntil } from '../../domain/money/settlement.js';
import type { Tx } from '../../store/store.js';
import { foreseePayer } from '../billing/limits/payer.js';
import { knownRequirements } from '../instances/image-requirements.js';
import { findSlowImage, reasonOf } from '../instances/slow-images.js';
import type { Platform } from '../system/platform.js';
import { checkStopTime } from './change-instance.js';
import { burnAfter, planDeploy, ratesOf, refusalsOf, type DeployChoice, type PlannedDeploy } from './deploy-checks.js';

/** What a deploy would cost and meet. Amounts are null where there is no such offer. */
export interface Estimate {
  gpu_per_hour_micro: number | null;
  /** Charged while the instance is stopped. */
  disk_per_hour_micro: number | null;
  burn_per_hour_micro: number | null;
  charged_per_hour_micro: number | null;
  required_micro: number | null;
  balance_micro: number;
  /** When the balance is used up if the instance runs, in ms since 1970; null also if it lasts over a century. */
  balance_lasts_until: number | null;
  /** Every refusal that the deploy would meet, in the order of API rule 18. */
  refusals: Refusal[];
  /** Why the instance would go to `error` at once although the deploy is accepted. */
  warning: string | null;
  /** What the image requires and the driver of the machine does not have, so that the start will probably fail. */
  driver_warning: string | null;
}

/**
 * Returns what a deploy would cost and meet at this moment. Reserves nothing and writes nothing. Refuses only a time to stop that is past,
 * with VALIDATION_FAILED.
 */
export function estimate(
  platform: Platform,
  caller: Caller,
  choice: DeployChoice & { stop_at: number | null },
): Estimate {
  return platform.store.transact((tx) => {
    checkStopTime(choice.stop_at, tx.now);
    const { payer, account } = foreseePayer(platform, tx, caller);
    const planned = planDeploy(platform, tx, caller, choice, payer);
    const rates = ratesOf(planned);
    const burn = burnAfter(planned) ?? null;
    const meters = [...account.meters, ...payer.live.flatMap((one) => metersToCome(one, tx.now))];
    const withThis = rates && [...meters, ...metersToCome({ ...rates, id: '', status: 'creating' }, tx.now)];
    return {
      gpu_per_hour_micro: rates?.pricePerHourMicro ?? null,
      disk_per_hour_micro: rates ? diskPerHourMicro(rates) : null,
      burn_per_hour_micro: burn,
      charged_per_hour_micro: rates ? chargedPerHourMicro([...payer.live, { ...rates, status: 'creating' }]) : null,
      required_micro: burn,
      balance_micro: payer.balanceMicro,
      balance_lasts_until: withThis ? lastsUntil({ ...account, meters: withThis }, tx.now) : null,
      refusals: refusalsOf(planned),
      warning: warningOf(tx, planned),
      driver_warning: driverWarningOf(tx, planned),
    };
  });
}

const NOT_METERED_YET: readonly InstanceStatus[] = ['creating', 'starting', 'stopping'];

/** Returns what will be metered of an instance that is on its way to `running` or `stopped`, as if it were there now. */
function metersToCome(instance: Rates & { id: string; status: InstanceStatus }, now: number): Metered[] {
  if (!NOT_METERED_YET.includes(instance.status)) return [];
  const interval = { id: 0, settledTo: now, attestedTo: now, closedAt: null, beyond: 'runs' as const, apiKeyId: null };
  return [
    {
      instanceId: instance.id,
      meter: instance.status === 'stopping' ? 'disk' : 'gpu',
      ratePerHourMicro: chargedPerHourMicro([instance]),
      settledMs: 0,
      intervals: [interval],
    },
  ];
}

function warningOf(tx: Tx, { template, offer, organizationId }: PlannedDeploy): string | null {
  if (template instanceof Refusal || offer instanceof Refusal) return null;
  const slow = findSlowImage(tx, organizationId, template.image, offer.machine.id);
  return slow ? reasonOf(slow) : null;
}

function driverWarningOf(tx: Tx, { template, offer, organizationId }: PlannedDeploy): string | null {
  // A virtual machine has a driver of its own.
  if (template instanceof Refusal || offer instanceof Refusal || template.kind === 'vm') return null;
  const machine = { ...offer.machine, gpu_model: offer.gpu_model };
  const requirements = knownRequirements(tx, organizationId, template.image, offer.machine.id);
  const fit = driverFit(requirements, machine);
  return typeof fit === 'object' ? wordsOfUnmet(fit, machine) : null;
}
