/**
 * Who may call what, written down a second time and apart from the server: it is what the matrix expects.
 *
 * - public: anybody, with whatever credential
 * - read: sessions of admins, members and viewers, and API keys, also those that are read-only
 * - money: the same, and sessions of the role billing
 * - member: sessions of admins and members, and API keys that are not read-only
 * - account: the signed-in user, also without an organization; an API key is TOKEN_INVALID
 * - session: an admin or member who is signed in; an API key is TOKEN_INVALID
 * - credentials: an admin or member who is signed in; an API key is ADMIN_REQUIRED
 * - pay: a session of an admin or of the role billing; everybody else is ADMIN_REQUIRED
 * - admin: an admin's session; everybody else is ADMIN_REQUIRED
 * - operator: an operator's session; for everybody else who is somebody it does not exist
 */
export type Access =
  | 'public'
  | 'read'
  | 'money'
  | 'member'
  | 'account'
  | 'session'
  | 'credentials'
  | 'pay'
  | 'admin'
  | 'operator';

/** What `{id}` names. */
export type ObjectKind =
  | 'api_key'
  | 'device_code'
  | 'identity'
  | 'instance'
  | 'invite'
  | 'invite_of_address'
  | 'invite_token'
  | 'issuer'
  | 'machine'
  | 'member'
  | 'offer'
  | 'organization'
  | 'quarantine'
  | 'rollout'
  | 'session'
  | 'second_factor'
  | 'ssh_key'
  | 'template'
  | 'template_hash'
  | 'webhook_delivery'
  | 'webhook_endpoint'
  | 'system_template'
  | 'enrollment_token'
  | 'unsubscribe_token';

export interface Route {
  operation: string;
  access: Access;
  object?: ObjectKind;
  /** The code that a foreign object and an unknown one get. */
  notFound?: string;
  body?: object;
}

const route = (operation: string, access: Access, body?: object): Route => ({
  operation,
  access,
  ...(body ? { body } : {}),
});
const of = (object: ObjectKind, notFound: string, operation: string, access: Access, body?: object): Route => ({
  ...route(operation, access, body),
  object,
  notFound,
});

const webhook = (operation: string, body?: object) =>
  of('webhook_endpoint', 'WEBHOOK_ENDPOINT_NOT_FOUND', operation, 'admin', body);
const instance = (operation: string, body?: object) =>
  of('instance', 'INSTANCE_NOT_FOUND', operation, operation.startsWith('GET') ? 'read' : 'member', body);
const machine = (operation: string, body?: object) => of('machine', 'MACHINE_NOT_FOUND', operation, 'operator', body);
const organization = (operation: string, body?: object) =>
  of('organization', 'ORGANIZATION_NOT_FOUND', operation, 'operator', body);
const WHY = { reason: 'x' };
const AT_EIGHT = { time_zone: 'UTC', entries: [{ action: 'stop', days: ['monday'], at: '08:00' }] };
const LATER = { starts_at: '2040-01-01T00:00:00.000Z', ends_at: '2040-01-02T00:00:00.000Z' };

const NO_CAPS = { burn_per_hour_micro: null, day_micro: null, month_micro: null };

export const ROUTES: readonly Route[] = [
  route('GET /healthz', 'public'),
  route('GET /readyz', 'public'),
  route('GET /metrics', 'public'),
  route('POST /v1/auth/sign-up', 'public', { email: 'nobody' }),
  route('POST /v1/auth/sign-in', 'public', { email: 'nobody' }),
  route('POST /v1/auth/sign-up/confirm', 'public', { token: 1 }),
  route('POST /v1/auth/password-reset', 'public', { email: 'nobody' }),
  route('POST /v1/auth/password-reset/confirm', 'public', { token: 1 }),
  route('POST /v1/auth/device', 'public', { name: 1 }),
  route('POST /v1/auth/device/token', 'public', { device_code: 1 }),
  route('POST /v1/me/device-codes', 'account', { user_code: 1 }),
  of('device_code', 'DEVICE_CODE_INVALID', 'POST /v1/me/device-codes/{id}/approve', 'account'),
  of('device_code', 'DEVICE_CODE_INVALID', 'POST /v1/me/device-codes/{id}/deny', 'account'),
  route('POST /v1/auth/sign-out', 'account'),
  route('POST /v1/auth/password', 'account', { current_password: 1 }),
  route('GET /v1/auth/sessions', 'account'),
  of('session', 'SESSION_NOT_FOUND', 'DELETE /v1/auth/sessions/{id}', 'account'),
  route('DELETE /v1/auth/sessions', 'account'),
  route('POST /v1/auth/sign-in-link', 'account'),
  route('POST /v1/auth/second-factor', 'public', { factor_token: 1 }),
  route('POST /v1/auth/second-factor/passkey', 'public', { factor_token: 1 }),
  route('GET /v1/me', 'account'),
  route('GET /v1/me/identities', 'account'),
  of('identity', 'IDENTITY_NOT_FOUND', 'DELETE /v1/me/identities/{id}', 'account'),
  route('POST /v1/me/proof', 'account', { password: 1 }),
  of('second_factor', 'FACTOR_NOT_FOUND', 'DELETE /v1/me/second-factors/{id}', 'account'),
  route('GET /v1/me/second-factors', 'account'),
  route('POST /v1/me/proof/passkey', 'account', { no: 1 }),
  route('POST /v1/me/second-factors/totp', 'account'),
  route('POST /v1/me/second-factors/totp/confirm', 'account', { code: 1 }),
  route('POST /v1/me/second-factors/passkeys/options', 'account'),
  route('POST /v1/me/second-factors/passkeys', 'account', { name: 1 }),
  route('POST /v1/me/recovery-codes', 'account', { no: 1 }),
  route('DELETE /v1/me/second-factor-removal', 'account'),
  route('GET /v1/me/mail', 'account'),
  route('PATCH /v1/me/mail', 'account', { money: false }),
  route('GET /v1/me/invites', 'account'),
  of('invite_of_address', 'INVITE_NOT_FOUND', 'POST /v1/me/invites/{id}/accept', 'account'),
  of('unsubscribe_token', 'NOT_FOUND', 'GET /v1/mail/unsubscribe/{id}', 'public'),
  of('unsubscribe_token', 'NOT_FOUND', 'POST /v1/mail/unsubscribe/{id}', 'public'),
  of('organization', 'MEMBER_NOT_FOUND', 'DELETE /v1/me/organizations/{id}', 'account'),
  of('invite_token', 'INVITE_NOT_FOUND', 'POST /v1/invites/{id}/accept', 'account'),

  route('POST /v1/orgs', 'account', { name: 'another' }),
  route('GET /v1/orgs/current', 'money'),
  route('GET /v1/orgs/current/second-factor', 'money'),
  route('PUT /v1/orgs/current/second-factor', 'admin', { required: 1 }),
  route('PATCH /v1/orgs/current', 'admin', { name: 'renamed' }),
  route('GET /v1/orgs/current/members', 'admin'),
  of('member', 'MEMBER_NOT_FOUND', 'PATCH /v1/orgs/current/members/{id}', 'admin', { role: 'admin' }),
  of('member', 'MEMBER_NOT_FOUND', 'DELETE /v1/orgs/current/members/{id}', 'admin'),
  route('GET /v1/orgs/current/invites', 'admin'),
  route('POST /v1/orgs/current/invites', 'admin', { email: 'guest@example.com' }),
  of('invite', 'INVITE_NOT_FOUND', 'DELETE /v1/orgs/current/invites/{id}', 'admin'),

  route('POST /v1/api-keys', 'credentials', { name: 'more' }),
  route('GET /v1/api-keys', 'read'),
  of('api_key', 'API_KEY_NOT_FOUND', 'DELETE /v1/api-keys/{id}', 'credentials'),
  of('api_key', 'API_KEY_NOT_FOUND', 'GET /v1/api-keys/{id}/spend-caps', 'money'),
  of('api_key', 'API_KEY_NOT_FOUND', 'PUT /v1/api-keys/{id}/spend-caps', 'pay', NO_CAPS),
  route('GET /v1/orgs/current/spend-caps', 'money'),
  route('PUT /v1/orgs/current/spend-caps', 'pay', NO_CAPS),

  route('GET /v1/ssh-keys', 'account'),
  route('POST /v1/ssh-keys', 'account', { name: 'k', public_key: 'no key' }),
  of('ssh_key', 'SSH_KEY_NOT_FOUND', 'DELETE /v1/ssh-keys/{id}', 'account'),

  route('GET /v1/offers', 'read'),
  of('offer', 'OFFER_NOT_FOUND', 'GET /v1/offers/{id}', 'read'),
  route('GET /v1/catalog/status', 'read'),
  route('GET /v1/offers/counts', 'read'),
  route('GET /v1/templates', 'read'),
  of('template', 'TEMPLATE_NOT_FOUND', 'GET /v1/templates/{id}', 'read'),
  of('template_hash', 'TEMPLATE_NOT_FOUND', 'GET /v1/templates/by-hash/{id}', 'read'),
  of('template', 'TEMPLATE_NOT_FOUND', 'POST /v1/templates/{id}/duplicate', 'member'),
  route('POST /v1/templates', 'session', { name: 'new', image: 'i' }),
  of('template', 'TEMPLATE_NOT_FOUND', 'PATCH /v1/templates/{id}', 'session', { name: 'renamed' }),
  of('template', 'TEMPLATE_NOT_FOUND', 'DELETE /v1/templates/{id}', 'session'),

  route('POST /v1/instances', 'member', { disk_gb: 1 }),
  route('POST /v1/instances/estimate', 'read', { disk_gb: 1 }),
  route('GET /v1/instances', 'read'),
  instance('GET /v1/instances/{id}'),
  instance('GET /v1/instances/{id}/logs'),
  instance('GET /v1/instances/{id}/events'),
  of('instance', 'INSTANCE_NOT_FOUND', 'GET /v1/instances/{id}/meter-intervals', 'money'),
  instance('GET /v1/instances/{id}/usage'),
  route('GET /v1/metrics/instances', 'read'),
  instance('POST /v1/instances/{id}/stop'),
  instance('POST /v1/instances/{id}/start'),
  instance('POST /v1/instances/{id}/access'),
  of('instance', 'INSTANCE_NOT_FOUND', 'PATCH /v1/instances/{id}', 'member', { label: 'x' }),
  instance('GET /v1/instances/{id}/schedule'),
  instance('PUT /v1/instances/{id}/schedule', AT_EIGHT),
  instance('DELETE /v1/instances/{id}/schedule'),
  instance('DELETE /v1/instances/{id}'),

  route('GET /v1/audit-log', 'admin'),
  route('GET /v1/audit-log.csv', 'admin'),
  route('GET /v1/events', 'read'),
  route('POST /v1/webhook-endpoints', 'admin', { url: 'https://hooks.example' }),
  route('GET /v1/webhook-endpoints', 'admin'),
  webhook('GET /v1/webhook-endpoints/{id}'),
  webhook('PATCH /v1/webhook-endpoints/{id}', { description: 'changed' }),
  webhook('DELETE /v1/webhook-endpoints/{id}'),
  webhook('POST /v1/webhook-endpoints/{id}/rotate-secret'),
  webhook('GET /v1/webhook-endpoints/{id}/deliveries'),
  webhook('POST /v1/webhook-endpoints/{id}/test'),
  webhook('POST /v1/webhook-endpoints/{id}/replay', { since: '2040-01-01T00:00:00Z' }),
  of('webhook_delivery', 'WEBHOOK_DELIVERY_NOT_FOUND', 'POST /v1/webhook-deliveries/{id}/replay', 'admin'),

  route('GET /v1/billing/transactions', 'money'),
  route('GET /v1/billing/transactions.csv', 'money'),
  route('GET /v1/billing/spend-daily', 'money'),
  route('GET /v1/billing/summary', 'money'),
  route('GET /v1/billing/summary.csv', 'money'),
  route('POST /v1/billing/checkout-session', 'pay', { amount_micro: 5_000_000 }),

  route('POST /v1/operator/enrollment-tokens', 'operator', {}),
  route('GET /v1/operator/enrollment-tokens', 'operator'),
  of('enrollment_token', 'NOT_FOUND', 'DELETE /v1/operator/enrollment-tokens/{id}', 'operator'),
  route('GET /v1/operator/overview', 'operator'),
  route('GET /v1/operator/revenue-daily', 'operator'),
  route('GET /v1/operator/machines', 'operator'),
  machine('GET /v1/operator/machines/{id}'),
  machine('GET /v1/operator/machines/{id}/usage'),
  machine('GET /v1/operator/machines/{id}/findings'),
  machine('POST /v1/operator/machines/{id}/cordon'),
  machine('POST /v1/operator/machines/{id}/uncordon'),
  machine('POST /v1/operator/machines/{id}/assign-gpus'),
  machine('POST /v1/operator/machines/{id}/lost'),
  machine('PUT /v1/operator/machines/{id}/maintenance', LATER),
  machine('DELETE /v1/operator/machines/{id}/maintenance'),
  machine('DELETE /v1/operator/machines/{id}/credentials'),
  machine('PUT /v1/operator/machines/{id}/disk-quota-waiver'),
  machine('DELETE /v1/operator/machines/{id}/disk-quota-waiver'),
  machine('DELETE /v1/operator/machines/{id}'),
  route('GET /v1/operator/offers', 'operator'),
  route('POST /v1/operator/offers', 'operator', { num_gpus: 0 }),
  of('offer', 'OFFER_NOT_FOUND', 'PATCH /v1/operator/offers/{id}', 'operator', { price_per_hour_micro: 1 }),
  of('offer', 'OFFER_NOT_FOUND', 'DELETE /v1/operator/offers/{id}', 'operator'),
  route('GET /v1/operator/templates', 'operator'),
  of('system_template', 'TEMPLATE_NOT_FOUND', 'GET /v1/operator/templates/{id}', 'operator'),
  route('POST /v1/operator/templates', 'operator', { name: 'new', image: 'i' }),
  of('system_template', 'TEMPLATE_NOT_FOUND', 'PATCH /v1/operator/templates/{id}', 'operator', { name: 'renamed' }),
  of('system_template', 'TEMPLATE_NOT_FOUND', 'DELETE /v1/operator/templates/{id}', 'operator'),
  route('GET /v1/operator/organizations', 'operator'),
  of('organization', 'ORGANIZATION_NOT_FOUND', 'POST /v1/operator/organizations/{id}/credits', 'operator', {
    amount_micro: 1,
    reason: 'test',
  }),
  of('organization', 'ORGANIZATION_NOT_FOUND', 'POST /v1/operator/organizations/{id}/dispute', 'operator'),
  of('organization', 'ORGANIZATION_NOT_FOUND', 'DELETE /v1/operator/organizations/{id}/dispute', 'operator'),
  of('organization', 'ORGANIZATION_NOT_FOUND', 'GET /v1/operator/organizations/{id}/transactions', 'operator'),
  of('organization', 'ORGANIZATION_NOT_FOUND', 'GET /v1/operator/organizations/{id}/users', 'operator'),
  organization('GET /v1/operator/organizations/{id}'),
  organization('GET /v1/operator/organizations/{id}/api-keys'),
  organization('GET /v1/operator/organizations/{id}/templates'),
  organization('GET /v1/operator/organizations/{id}/machines'),
  organization('POST /v1/operator/organizations/{id}/suspend', WHY),
  organization('POST /v1/operator/organizations/{id}/restore', WHY),
  machine('POST /v1/operator/machines/{id}/notice', { message: 'x' }),
  of('member', 'USER_NOT_FOUND', 'POST /v1/operator/users/{id}/end-sessions', 'operator', WHY),
  of('member', 'USER_NOT_FOUND', 'PUT /v1/operator/users/{id}/operator', 'operator', WHY),
  of('member', 'USER_NOT_FOUND', 'DELETE /v1/operator/users/{id}/operator', 'operator', WHY),
  route('GET /v1/operator/users', 'operator'),
  route('GET /v1/operator/second-factor-removals', 'operator'),
  of('member', 'USER_NOT_FOUND', 'POST /v1/operator/users/{id}/second-factor-removal', 'operator', { reason: 'x' }),
  of('member', 'REMOVAL_NOT_FOUND', 'DELETE /v1/operator/users/{id}/second-factor-removal', 'operator'),
  of('member', 'USER_NOT_FOUND', 'DELETE /v1/operator/users/{id}', 'operator'),
  of('member', 'USER_NOT_FOUND', 'POST /v1/operator/users/{id}/password-reset', 'operator', WHY),
  route('GET /v1/operator/issuers', 'operator'),
  route('PUT /v1/operator/issuers/{id}', 'operator', {}),
  of('issuer', 'ISSUER_NOT_FOUND', 'PATCH /v1/operator/issuers/{id}', 'operator', { name: 'renamed' }),
  of('issuer', 'ISSUER_NOT_FOUND', 'DELETE /v1/operator/issuers/{id}', 'operator'),
  route('GET /v1/operator/revenue', 'operator'),
  route('GET /v1/operator/payments', 'operator'),
  route('GET /v1/operator/payouts/{id}/entries', 'operator'),
  route('GET /v1/operator/events', 'operator'),
  route('GET /v1/operator/quarantine', 'operator'),
  of('quarantine', 'QUARANTINE_NOT_FOUND', 'POST /v1/operator/quarantine/{id}/remove', 'operator'),
  route('POST /v1/operator/quarantine/{id}/adopt', 'operator', { disk_gb: 1 }),
  route('POST /v1/operator/rollouts', 'operator'),
  route('GET /v1/operator/rollouts', 'operator'),
  of('rollout', 'ROLLOUT_NOT_FOUND', 'GET /v1/operator/rollouts/{id}', 'operator'),
  of('rollout', 'ROLLOUT_NOT_FOUND', 'POST /v1/operator/rollouts/{id}/stop', 'operator'),
  route('GET /v1/operator/audit-log', 'operator'),
  route('GET /v1/operator/ignored-stops', 'operator'),
  of('instance', 'INSTANCE_NOT_FOUND', 'POST /v1/operator/instances/{id}/credit-ignored-stop', 'operator', {
    reason: 'x',
  }),
  route('GET /v1/operator/instances', 'operator'),
  of('instance', 'INSTANCE_NOT_FOUND', 'POST /v1/operator/instances/{id}/stop', 'operator', { reason: 'x' }),
  of('instance', 'INSTANCE_NOT_FOUND', 'DELETE /v1/operator/instances/{id}', 'operator', { reason: 'x' }),
  route('GET /v1/operator/workers', 'operator'),
  route('GET /v1/operator/clock', 'operator'),
  route('GET /v1/operator/control-plane', 'operator'),
  route('GET /v1/operator/settings', 'operator'),
  route('POST /v1/operator/clock/confirm', 'operator'),
];
