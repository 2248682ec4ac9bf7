import { expect, it } from 'vitest';
import { Flights } from '../../control-plane/services/webhooks/flights.js';

const owner = (organization: number, delivery = 0) => ({
  endpointId: `endpoint of ${organization}`,
  organizationId: `organization ${organization}`,
  deliveryId: `${organization}.${delivery}`,
});
const of = (organizations: number) => new Flights(Array.from({ length: organizations }, (_, index) => owner(index)));

it('50 attempts are under way at most, and an organization has one from the 25th on', () => {
  const newcomer = { ...owner(99), failures: 0 };
  const second = { ...owner(0), endpointId: 'its other endpoint', failures: 0 };
  expect([of(24).allows(second), of(24).allows(newcomer)]).toEqual([true, true]);
  expect([of(25).allows(second), of(25).allows(newcomer)]).toEqual([false, true]);
  expect([of(49).allows(newcomer), of(50).allows(newcomer), of(50).isFull]).toEqual([true, false, true]);
});
