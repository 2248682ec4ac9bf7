import { Type } from 'typebox';
import { describeOrganization } from '../../services/organizations.js';
import { MEMBER, callerOf } from '../policy.js';
import { Micro, Timestamp, Uuid, iso } from '../schemas.js';
import type { Routes } from './routes.js';

const Organization = Type.Object({
  id: Uuid,
  name: Type.String(),
  balance_micro: Micro,
  payments_frozen: Type.Boolean(),
  burn_per_hour_micro: Micro,
  created_at: Timestamp,
});

export const organizationRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/orgs/current',
    { config: { policy: MEMBER }, schema: { response: { 200: Organization } } },
    (request) => {
      const organization = describeOrganization(platform, callerOf(request));
      return {
        ...organization,
        payments_frozen: organization.payments_frozen_at !== null,
        created_at: iso(organization.created_at),
      };
    },
  );
};
