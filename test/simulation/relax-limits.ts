import { changeInstance } from '../../control-plane/services/actions/change-instance.js';
import { readSpendCaps, setSpendCaps } from '../../control-plane/services/billing/caps/spend-caps.js';
import type { World } from './world.js';

/**
 * Now and then somebody raises or lifts a limit or a cap, also while hosts are away: what is charged stays below the highest. Lower ones
 * are left to the tests of billing, which know what was charged at each time.
 */
export function relaxLimits(world: World): void {
  const { limits, controlPlane } = world;
  if (!limits?.random.chance(0.1) || !controlPlane.alive) return;
  const { random } = limits;
  const renter = random.pick(world.renters);
  if (!renter) return;
  if (random.chance(0.3)) {
    const by = random.between(1, 20_000_000);
    world.attempt('raise the caps', () => {
      const { platform } = controlPlane;
      const { burn_per_hour_micro, day_micro, month_micro } = readSpendCaps(platform, renter, null);
      const raised = { day_micro: day_micro && day_micro + by, month_micro: month_micro && month_micro + by };
      return setSpendCaps(platform, renter, null, { burn_per_hour_micro, ...raised });
    });
    return;
  }
  const limited = world.rows<{ id: string; max_charge_micro: number }>(
    "SELECT id, max_charge_micro FROM instances WHERE organization_id = ? AND max_charge_micro > 0 AND status <> 'destroyed'",
    renter.organizationId,
  );
  const instance = random.pick(limited);
  if (!instance) return;
  const max_charge_micro = random.chance(0.2) ? null : instance.max_charge_micro + random.between(1, 10_000_000);
  world.attempt(`raise ${instance.id}`, () =>
    changeInstance(controlPlane.platform, renter, instance.id, { max_charge_micro }),
  );
}
