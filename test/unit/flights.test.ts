import { expect, it } from 'vitest';
import { Flights } from '../../control-plane/services/webhooks/flights.js';

const owner = (organization: number, delivery = 0, hasPaid = true) => ({
  endpointId: `endpoint of ${organization}`,
  organizationId: `organization ${organization}`,
  holder: { hasPaid, person: `organization ${organization}`, network: '' },
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

it('of those that have never paid half are under way at most, and one account has the share of one however many organizations it has', () => {
  const unpaid = (organization: number, person = `person ${organization}`) => ({
    ...owner(organization, 0, false),
    holder: {
      hasPaid: false,
      person,
      network: '',
    },
    failures: 0,
  });
  const flights = new Flights(Array.from({ length: 24 }, (_, index) => unpaid(index)));
  expect(flights.allows(unpaid(99))).toBe(true);
  flights.add(unpaid(99));
  expect(flights.allows(unpaid(100))).toBe(false);
  expect(flights.allows({ ...owner(100), failures: 0 })).toBe(true);
  const ofOne = new Flights([1, 2, 3, 4].map((organization) => unpaid(organization, 'the same')));
  expect([ofOne.allows(unpaid(5, 'the same')), ofOne.allows(unpaid(5))]).toEqual([false, true]);
});
