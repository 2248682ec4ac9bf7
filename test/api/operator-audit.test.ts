import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OperatorAct } from '../../control-plane/domain/operator-act.js';
import { recordAudit } from '../../control-plane/services/system/audit.js';
import { MOST_SCANNED } from '../../control-plane/services/system/log-pages.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';

interface Page {
  items: { id: number; action: string; subject: string; actor_email: string }[];
  next_cursor: string | null;
}

let test: TestControlPlane;
let other: Renter;
beforeAll(async () => {
  test = await TestControlPlane.start();
  other = await test.renter(0);
  test.makeOperator(other.userId);
});
afterAll(() => test.stop());

const read = (search: string) => test.operator.get<Page>(`/v1/operator/audit-log?${search}`);
const found = async (search: string) => (await read(search)).items.map(({ action, subject }) => `${action} ${subject}`);

/** Writes entries, without requests. */
function write(by: Renter, count: number, action: OperatorAct, subject: string): void {
  test.core.platform.store.transact((tx) => {
    for (let index = 0; index < count; index++)
      recordAudit(tx, { userId: by.userId, email: by.email }, action, subject);
  });
}

describe('a search in the audit log of operators', () => {
  it('finds what was done in a time, by somebody, of a kind and to something', async () => {
    const renter = await test.renter(0);
    const credit = (api = test.operator) =>
      api.post(`/v1/operator/organizations/${renter.organizationId}/credits`, { amount_micro: 1, reason: 'x' });
    const times: string[] = [];
    for (const api of [test.operator, other.api, test.operator]) {
      test.clock.advance(1_000);
      times.push(new Date(test.clock.now()).toISOString());
      await credit(api);
    }
    await other.api.post(`/v1/operator/organizations/${renter.organizationId}/dispute`, { reason: 'x' });
    const credited = `organization.credit ${renter.organizationId}`;
    const disputed = `dispute.open ${renter.organizationId}`;
    const of = `subject=${renter.organizationId}`;
    expect(await found(of)).toEqual([disputed, credited, credited, credited]);
    expect(await found(`${of}&action=dispute.open`)).toEqual([disputed]);
    expect(await found(`actor_email=${other.email.toUpperCase()}`)).toEqual([disputed, credited]);
    expect(await found(`${of}&actor_email=${other.email}&action=organization.credit`)).toEqual([credited]);
    expect(await found(`${of}&since=${times[1]}&until=${times[2]}`)).toEqual([credited]);
    expect(await found(`${of}&until=${times[0]}`)).toEqual([]);
    expect(await found(`actor_email=nobody@example.com`)).toEqual([]);
    const refused = ['action=x', 'since=yesterday', `since=${times[1]}&until=${times[0]}`, `subject=${'x'.repeat(65)}`];
    for (const search of refused)
      expect(await test.operator.request('GET', `/v1/operator/audit-log?${search}`), search).toMatchObject({
        status: 422,
      });
  });

  it('comes in pages', async () => {
    write(other, 5, 'machine.cordon', 'rack');
    const first = await read('subject=rack&limit=3');
    const second = await read(`subject=rack&limit=3&cursor=${first.next_cursor}`);
    expect([first.items.length, second.items.length, second.next_cursor]).toEqual([3, 2, null]);
  });

  it('looks at 2,000 entries for a page of several filters, and goes on from there', async () => {
    write(other, 1, 'machine.lost', 'full');
    write(other, MOST_SCANNED, 'machine.notice', 'full');
    const search = 'subject=full&action=machine.lost';
    const first = await read(search);
    expect(first.items).toEqual([]);
    const second = await read(`${search}&cursor=${first.next_cursor}`);
    expect(second).toMatchObject({ items: [{ action: 'machine.lost' }], next_cursor: null });
    // One filter alone is an index: it finds at once what is old.
    expect(await found('action=machine.lost')).toEqual(['machine.lost full']);
  });
});
