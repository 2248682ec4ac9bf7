import type { components } from '../../api/index.js';
import { adviceFor } from '../errors/advice.js';
import { CliError } from '../errors/cli-error.js';
import { EXIT, type ExitCode } from '../errors/exit-codes.js';
import { lasting } from '../output/lasting.js';
import { dollars } from '../output/money.js';
import { minuteOf } from '../output/times.js';
import { wordsOfOffer } from './offers.js';
import type { DeployBody, Plan } from './plan.js';

type Estimate = components['schemas']['Estimate'];

/** Says what is deployed, what it costs, how long the balance lasts with it, and when it ends by itself. */
export function priceLines({ offer, template }: Plan, body: DeployBody, estimate: Estimate, now: number): string[] {
  const { gpu_per_hour_micro: gpu, disk_per_hour_micro: disk, balance_micro, balance_lasts_until } = estimate;
  const charged = { balanceMicro: balance_micro, chargedMicro: estimate.charged_per_hour_micro };
  const lasts = lasting({ ...charged, until: balance_lasts_until }, now);
  const { stop_at, max_charge_micro, idle_stop_minutes, on_limit } = body;
  const act = on_limit === 'destroy' ? 'Destroyed' : 'Stopped';
  return [
    `${template.name}, ${wordsOfOffer(offer)}, ${body.disk_gb} GB disk`,
    `${gpu === null ? '?' : dollars(gpu)} an hour while it runs, ${disk === null ? '?' : dollars(disk)} an hour while it is stopped`,
    `Balance ${dollars(balance_micro)}: ${lasts} with this`,
    ...(stop_at ? [`${act} at ${minuteOf(stop_at)}`] : []),
    ...(max_charge_micro ? [`${act} when it has cost ${dollars(max_charge_micro)}`] : []),
    ...(idle_stop_minutes ? [`${act} when it was idle for ${idle_stop_minutes} min`] : []),
    ...[estimate.warning, estimate.driver_warning].flatMap((warning) => (warning ? [`Warning: ${warning}`] : [])),
  ];
}

/** Returns a deploy that accepts the price that was shown, and no higher one. */
export function atMostFor(body: DeployBody, { gpu_per_hour_micro, disk_per_hour_micro }: Estimate): DeployBody {
  return { ...body, max_gpu_per_hour_micro: gpu_per_hour_micro, max_disk_per_hour_micro: disk_per_hour_micro };
}

const NO_MONEY = ['INSUFFICIENT_BALANCE', 'PAYMENTS_FROZEN', 'SPEND_LIMIT_REACHED'];

/** Throws the first error that the deploy would meet, as the deploy itself would. */
export function refuseWhatCannotBe({ refusals: [first] }: Estimate): void {
  if (!first) return;
  throw new CliError(exitCodeOf(first.code), first.message, adviceFor(first.code));
}

function exitCodeOf(code: string): ExitCode {
  if (NO_MONEY.includes(code)) return EXIT.noMoney;
  return code.endsWith('_NOT_FOUND') ? EXIT.notFound : EXIT.refused;
}
