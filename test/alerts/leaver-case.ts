import { expect } from 'vitest';
import { browserAt, comeBack } from '../harness/companies.js';
import { CompanyPeople } from '../harness/company-people.js';
import { LyingIssuer } from '../harness/lying-issuer.js';
import { MINUTE_MS, type AlertCase } from './cases.js';

export const refusedAdmin: AlertCase = {
  how: 'a company disables the account of the last admin of its organization',
  summary: /^1 organization\(s\) have a last admin whom their company has refused as unknown or disabled$/,
  async provoke(installation) {
    const { controlPlane: test } = installation;
    const issuer = await LyingIssuer.start();
    const people = new CompanyPeople(test, issuer);
    const { api, organizationId } = await test.renter(0);
    await people.setUp(organizationId, { session_hours: 1 });
    const browser = await people.signIn('alice', browserAt(test));
    const { user } = await (await people.api(browser)).get<{ user: { id: string } }>('/v1/me');
    await api.request('PATCH', `/v1/orgs/current/members/${user.id}`, { role: 'admin' });
    await api.request('DELETE', `/v1/me/organizations/${organizationId}`);
    await installation.pass(30 * MINUTE_MS);
    await comeBack(browser, issuer.refuse((await people.open(browser)) ?? '', 'access_denied'));
    expect(await people.status(browser)).toBe(401);
    return async () => {
      await people.signIn('alice', browser);
      await issuer.stop();
    };
  },
};
