import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { forgetIssuerSecrets } from '../../control-plane/services/identity/companies/issuers.js';
import { setCompany } from '../harness/companies.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';

const ACME = {
  name: 'Acme',
  issuer: 'https://login.acme.example/',
  client_id: 'gpurent',
  client_secret: 'very secret',
  domains: [{ domain: 'acme.example' }],
};
const NOWHERE = '00000000-0000-4000-8000-000000000000';

let test: TestControlPlane;
let renter: Renter;
let restore: () => void;

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter(0);
  restore = test.snapshot();
});
afterEach(() => restore());
afterAll(() => test.stop());

interface Issuer {
  id: string;
  code?: string;
  details?: { path: string }[];
  domains?: object[];
}

const put = (body: object, id = 'acme') => test.operator.request<Issuer>('PUT', `/v1/operator/issuers/${id}`, body);
const patch = (body: object) => test.operator.request<Issuer>('PATCH', '/v1/operator/issuers/acme', body);
const listed = async () => (await test.operator.get<{ items: Issuer[] }>('/v1/operator/issuers')).items;

describe('an issuer', () => {
  it('is set, changed, listed and removed, and each act is in the audit log', async () => {
    const { organizationId } = renter;
    const set = await put(ACME);
    const shown = {
      id: 'acme',
      name: 'Acme',
      issuer: 'https://login.acme.example',
      client_id: 'gpurent',
      has_client_secret: true,
      listed: false,
      session_hours: null,
      renews_sessions: false,
      redirect_path: '/sign-in/company/acme/return',
      domains: [
        {
          domain: 'acme.example',
          organization_id: null,
          role: 'member',
          passwords_off: false,
          accept_unverified: false,
        },
      ],
    };
    expect(set).toMatchObject({ status: 200, body: shown });
    const domains = [
      { domain: 'acme.example', organization_id: organizationId, passwords_off: true },
      { domain: 'acme.test', role: 'billing' },
    ];
    const changed = await patch({ domains, listed: true });
    expect(changed.body).toMatchObject({
      ...shown,
      listed: true,
      domains: [
        {
          domain: 'acme.example',
          organization_id: organizationId,
          role: 'member',
          passwords_off: true,
          accept_unverified: false,
        },
        {
          domain: 'acme.test',
          organization_id: null,
          role: 'billing',
          passwords_off: false,
          accept_unverified: false,
        },
      ],
    });
    expect(await listed()).toEqual([changed.body]);
    expect((await put({ ...ACME, name: 'New' })).body).toMatchObject({ ...shown, name: 'New' });
    await test.operator.delete('/v1/operator/issuers/acme');
    expect(await listed()).toEqual([]);
    const log = await test.operator.get<{ items: { action: string; subject: string; details: object }[] }>(
      '/v1/operator/audit-log?limit=4',
    );
    expect(log.items.map(({ action, subject }) => [action, subject])).toEqual([
      ['issuer.remove', 'acme'],
      ['issuer.set', 'acme'],
      ['issuer.change', 'acme'],
      ['issuer.set', 'acme'],
    ]);
    expect(log.items[2]?.details).toMatchObject({
      issuer: 'https://login.acme.example',
      domains: [{ passwords_off: true }, {}],
    });
  });

  it('has a length of its sessions between an hour and 30 days, which is no more where it is left out of a replacement', async () => {
    const sessions = { session_hours: 8, renews_sessions: true };
    expect((await put({ ...ACME, ...sessions })).body).toMatchObject(sessions);
    expect((await patch({ name: 'New' })).body).toMatchObject(sessions);
    expect(await listed()).toMatchObject([sessions]);
    const log = await test.operator.get<{ items: { details: object }[] }>('/v1/operator/audit-log?limit=1');
    expect(log.items).toMatchObject([{ action: 'issuer.change', details: sessions }]);
    for (const session_hours of [0, 721, 1.5, -1, '8'])
      expect(await patch({ session_hours })).toMatchObject({
        status: 422,
        body: { details: [{ path: 'session_hours' }] },
      });
    expect((await patch({ session_hours: 720 })).body).toMatchObject({ ...sessions, session_hours: 720 });
    expect((await patch({ session_hours: null })).body).toMatchObject({ ...sessions, session_hours: null });
    expect((await put(ACME)).body).toMatchObject({ session_hours: null, renews_sessions: false });
  });

  it('tells its secret to nobody, and the database has it encrypted', async () => {
    const answers = [await put(ACME), await patch({ client_secret: 'another secret' }), await listed()];
    const log = await test.operator.get('/v1/operator/audit-log');
    for (const text of [JSON.stringify([answers, log]), test.everythingStored()]) expect(text).not.toContain(' secret');
    await patch({ name: 'New' });
    const { items } = await test.operator.get<{ items: object[] }>('/v1/operator/issuers');
    expect(items).toMatchObject([{ has_client_secret: true }]);
  });

  it('is not one whose unverified addresses count, unless it is that of one company', async () => {
    const domains = [{ domain: 'acme.example', accept_unverified: true }];
    const tenant = 'https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/v2.0';
    const refused = { status: 422, body: { code: 'VALIDATION_FAILED', details: [{ path: 'domains' }] } };
    for (const issuer of ['https://login.microsoftonline.com/common/v2.0', 'https://accounts.google.com'])
      expect(await put({ ...ACME, issuer, domains })).toMatchObject(refused);
    expect(await listed()).toEqual([]);
    expect((await put({ ...ACME, issuer: tenant, domains })).body.domains).toMatchObject([{ accept_unverified: true }]);
    expect(await patch({ issuer: 'https://accounts.google.com' })).toMatchObject(refused);
    expect(await listed()).toMatchObject([{ issuer: tenant }]);
  });

  it.each([
    ['issuer', 'http://login.acme.example'],
    ['issuer', 'http://127.0.0.1.nip.example'],
    ['issuer', 'https://login.acme.example/?tenant=1'],
    ['issuer', 'https://user@login.acme.example'],
    ['issuer', 'ldap://login.acme.example'],
    ['issuer', 'login.acme.example'],
    ['name', 'A\u202ecme'],
    ['client_secret', ''],
    ['domains.0.domain', 'Acme.example'],
    ['domains.0.domain', '*.acme.example'],
    ['domains.0.domain', 'example'],
    ['domains.0.domain', 'acme.example.'],
    ['domains.0.role', 'admin'],
  ])('is refused with a wrong %s: %s', async (path, value) => {
    const name = path.split('.').at(-1) ?? '';
    const isOfDomain = path.startsWith('domains');
    const body = isOfDomain
      ? { ...ACME, domains: [{ domain: 'acme.example', [name]: value }] }
      : { ...ACME, [name]: value };
    const refused = await put(body);
    expect([refused.status, refused.body.details?.map((each) => each.path)]).toEqual([422, [path]]);
  });

  it.each(['Acme', 'a/b', '-a', 'x'.repeat(33)])('is refused with the id %s', async (id) => {
    expect((await put(ACME, encodeURIComponent(id))).status).toBe(422);
  });

  it('at loopback may have no TLS: it does not leave this machine', async () => {
    for (const issuer of ['http://127.0.0.1:9000', 'http://localhost:9000/realm', 'http://[::1]:9000'])
      expect((await put({ ...ACME, issuer })).status).toBe(200);
  });

  it('has an address and domains that no other has', async () => {
    await put(ACME);
    const taken = { status: 409, body: { code: 'ISSUER_TAKEN' } };
    expect(await put({ ...ACME, domains: [] }, 'other')).toMatchObject(taken);
    expect(await put({ ...ACME, issuer: 'https://other.example' }, 'other')).toMatchObject(taken);
    await put({ ...ACME, issuer: 'https://other.example', domains: [] }, 'other');
    expect(await patch({ issuer: 'https://other.example' })).toMatchObject(taken);
    const twice = [{ domain: 'acme.example' }, { domain: 'acme.example' }];
    expect((await patch({ domains: twice })).status).toBe(422);
    expect(await patch({ domains: [{ domain: 'a.example', organization_id: NOWHERE }] })).toMatchObject({
      status: 404,
      body: { code: 'ORGANIZATION_NOT_FOUND' },
    });
    expect(await listed()).toMatchObject([{ id: 'acme', domains: [{ domain: 'acme.example' }] }, { id: 'other' }]);
  });

  it('that is unknown is not there', async () => {
    const missing = { status: 404, body: { code: 'ISSUER_NOT_FOUND' } };
    expect(await patch({ name: 'New' })).toMatchObject(missing);
    expect(await test.operator.request('DELETE', '/v1/operator/issuers/acme')).toMatchObject(missing);
  });

  it('is one of a hundred, with a hundred domains', async () => {
    for (let count = 0; count < 100; count++)
      await setCompany(test, `https://issuer${count}.example`, { id: `issuer${count}`, domains: [] });
    expect(await put(ACME)).toMatchObject({ status: 409, body: { code: 'LIMIT_REACHED', limit: 100 } });
    const domains = Array.from({ length: 101 }, (_, count) => ({ domain: `d${count}.example` }));
    const body = { ...ACME, issuer: 'https://issuer0.example' };
    expect((await put({ ...body, domains }, 'issuer0')).status).toBe(422);
    expect((await put({ ...body, domains: domains.slice(1) }, 'issuer0')).status).toBe(200);
  });

  it('whose secret was lost with the key asks the operator for it', async () => {
    await put(ACME);
    test.core.platform.store.transact((tx) => forgetIssuerSecrets(tx));
    expect(await listed()).toMatchObject([{ has_client_secret: false }]);
    const answer = await fetch(`${test.url}/sign-in/company/acme/start`, { redirect: 'manual' });
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('give the secret')]);
  });
});
