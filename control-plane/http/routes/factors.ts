import { factorProofRoutes, factorRequirementRoutes } from './identity/factor-proofs.js';
import { operatorFactorRoutes } from './operator/factors.js';
import { factorEnrolmentRoutes, secondFactorRoutes } from './identity/second-factors.js';
import type { Routes } from './routes.js';

/** All routes for second factors. */
export const factorRoutes: readonly Routes[] = [
  factorProofRoutes,
  factorEnrolmentRoutes,
  factorRequirementRoutes,
  operatorFactorRoutes,
  secondFactorRoutes,
];
