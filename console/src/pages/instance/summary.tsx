import { useQuery } from '@tanstack/react-query';
import { costNow, diskPrice } from '../../data/instances/instances.js';
import type { Instance } from '../../data/api/models.js';
import { nameOfOffer } from '../../data/instances/offers.js';
import { Facts } from '../../parts/layout/facts.js';
import { limitFacts } from '../../parts/values/limit-facts.js';
import { Hourly, Money } from '../../parts/values/money.js';
import { At } from '../../parts/values/time.js';
import { scheduleOf } from './schedule-query.js';

/** What was rented, what it costs, and what ends it by itself. */
export function Summary({ instance }: { instance: Instance }) {
  const { template, disk_gb, spend_micro, price_per_hour_micro, deployed_by, status, machine } = instance;
  return (
    <Facts
      facts={[
        ['Cost so far', <Money key="spend" micro={spend_micro} />],
        ['Cost now', <Hourly key="now" micro={costNow(instance)} />],
        ['While it runs', <Hourly key="runs" micro={price_per_hour_micro} />],
        ['While it is stopped', <Hourly key="stopped" micro={diskPrice(instance)} />],
        ['GPU', nameOfOffer(instance)],
        ['Machine', machine.name],
        ['Region', machine.region || 'not named'],
        ['Template', template.name],
        ['Disk', `${disk_gb} GB`],
        ['Deployed by', deployed_by],
        ...limitFacts(instance),
        ...(status === 'destroyed' ? [] : [['By its schedule', <Next key="next" id={instance.id} />] as const]),
      ]}
    />
  );
}

function Next({ id }: { id: string }) {
  const { data, isError } = useQuery(scheduleOf(id));
  if (!data) return <>{isError ? 'not known' : '…'}</>;
  if (!data.next) return <>nothing</>;
  return (
    <>
      {data.next.action} <At at={data.next.at} />
    </>
  );
}
