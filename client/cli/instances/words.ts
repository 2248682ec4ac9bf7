import type { GpurentEvent } from '../../api/index.js';
import { dollars } from '../output/money.js';

/** Says an event in a line. A later release can send types that this one does not know. */
export function wordsOf({ type, data }: GpurentEvent): string {
  if ('percent' in data && data.percent !== null && type === 'instance.progress')
    return `${data.kind} ${data.percent} %`;
  if ('message' in data && data.message) return data.message;
  if ('status' in data) return data.status;
  if ('balance_micro' in data && 'amount_micro' in data)
    return `${dollars(data.amount_micro)}, balance ${dollars(data.balance_micro)}`;
  if ('balance_micro' in data) return `balance ${dollars(data.balance_micro)}`;
  return 'name' in data ? data.name : type;
}
