import type { components, paths } from '../../../../client/api/index.js';

type Answers = components['schemas'];
type Answer<Path extends keyof paths> = paths[Path] extends {
  get: { responses: { 200: { content: { 'application/json': infer Body } } } };
}
  ? Body
  : never;

/** The answers of the API for operators by the names that these pages use. */
export type Machine = Answers['OperatedMachine'];
export type EnrollmentToken =
  paths['/v1/operator/enrollment-tokens']['post']['responses'][201]['content']['application/json'];
export type ListedToken = Answer<'/v1/operator/enrollment-tokens'>['items'][number];
export type Gpu = Machine['gpus'][number];
export type MachineUsage = Answer<'/v1/operator/machines/{id}/usage'>['instances'][number];
export type MachineFindings = Answers['MachineFindings'];
export type Finding = Answers['Finding'];
export type MachineEvent = Answer<'/v1/operator/events'>['items'][number];
export type OperatedOffer = Answers['OperatedOffer'];
export type OperatedOrganization = Answers['OperatedOrganization'];
export type OperatedInstance = Answers['OperatedInstance'];
export type Workload = Answers['QuarantinedWorkload'];
export type AuditEntry = Answers['AuditEntry'];
export type Clock = Answers['Clock'];
export type Worker = Answers['Worker'];
export type IgnoredStop = Answers['IgnoredStop'];
export type ControlPlane = Answers['ControlPlane'];
export type Setting = Answers['Setting'];
export type OperatedUser = Answers['OperatedUser'];
export type FactorRemoval = Answers['FactorRemoval'];
export type Payment = Answers['Payment'];
export type PayoutEntry = Answers['PayoutEntry'];
export type Issuer = Answers['Issuer'];
export type Revenue = Answers['Revenue'];
export type Overview = Answers['OperatorOverview'];
export type Need = Answers['Need'];
export type MachineNeed = NonNullable<
  NonNullable<paths['/v1/operator/machines']['get']['parameters']['query']>['need']
>;
export type OrganizationNeed = NonNullable<
  NonNullable<paths['/v1/operator/organizations']['get']['parameters']['query']>['need']
>;
export type NeedItem = Need['items'][number];
export type DailyRevenue = Answers['DailyRevenue'];
export type Adoption = NonNullable<
  paths['/v1/operator/quarantine/{id}/adopt']['post']['requestBody']
>['content']['application/json'];
export type NewOffer = paths['/v1/operator/offers']['post']['requestBody']['content']['application/json'];
