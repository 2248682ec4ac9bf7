import type { components, paths } from '../../../../client/api/index.js';

type Answer<Path extends keyof paths> = paths[Path] extends {
  get: { responses: { 200: { content: { 'application/json': infer Body } } } };
}
  ? Body
  : never;
type ItemOf<Path extends keyof paths> = Answer<Path> extends { items: (infer Item)[] } ? Item : never;

/** The answers of the API by the names that the console uses. */
export type Me = Answer<'/v1/me'>;
export type Organization = Answer<'/v1/orgs/current'>;
export type Instance = components['schemas']['Instance'];
export type InstanceStatus = Instance['status'];
export type MeterInterval = ItemOf<'/v1/instances/{id}/meter-intervals'>;
export type Usage = Answer<'/v1/instances/{id}/usage'>;
export type Schedule = Answer<'/v1/instances/{id}/schedule'>;
export type Offer = ItemOf<'/v1/offers'>;
export type OfferCounts = Answer<'/v1/offers/counts'>;
export type Template = ItemOf<'/v1/templates'>;
export type SshKey = ItemOf<'/v1/ssh-keys'>;
export type Transaction = ItemOf<'/v1/billing/transactions'>;
export type DeployRequest = paths['/v1/instances']['post']['requestBody']['content']['application/json'];
export type Estimate = paths['/v1/instances/estimate']['post']['responses'][200]['content']['application/json'];
export type Role = Me['memberships'][number]['role'];
export type Member = ItemOf<'/v1/orgs/current/members'>;
export type Invite = ItemOf<'/v1/orgs/current/invites'>;
export type AuditEntry = ItemOf<'/v1/audit-log'>;
export type AuditFilter = NonNullable<paths['/v1/audit-log']['get']['parameters']['query']>;
export type WebhookEndpoint = ItemOf<'/v1/webhook-endpoints'>;
export type WebhookRequest = paths['/v1/webhook-endpoints']['post']['requestBody']['content']['application/json'];
export type WebhookDelivery = ItemOf<'/v1/webhook-endpoints/{id}/deliveries'>;
export type SecondFactors = Answer<'/v1/me/second-factors'>;
export type Session = ItemOf<'/v1/auth/sessions'>;
export type MailSettings = Answer<'/v1/me/mail'>;
export type LinkedAccount = ItemOf<'/v1/me/identities'>;
