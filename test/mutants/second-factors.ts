import type { Mutant } from './mutant.js';

/** Of the control plane: second factors, and the proofs that dangerous acts need. */
export const SECOND_FACTORS: readonly Mutant[] = [
  {
    name: 'no-second-step',
    file: 'control-plane/services/identity/sign-in/sign-in.ts',
    before: '  if (hasFactor(tx, user.id)) return beginFactorStep(platform, tx, user.id, issuer);\n',
    after: '  if (hasFactor(tx, user.id) && tx.now < 0) return beginFactorStep(platform, tx, user.id, issuer);\n',
    tests: ['test/api/company-proofs.test.ts'],
  },
  {
    name: 'code-of-an-app-taken-twice',
    file: 'control-plane/services/identity/factors/give-factor.ts',
    before: 'if (step === undefined || step <= last_step) continue;',
    after: 'if (step === undefined) continue;',
    tests: ['test/api/second-factors.test.ts'],
  },
  {
    name: 'recovery-code-taken-twice',
    file: 'control-plane/services/identity/factors/recovery-codes.ts',
    before:
      "return tx.run(query.deleteFrom('recovery_codes').where('user_id', '=', userId).where('code_hash', '=', hash)) > 0;",
    after:
      "return tx.all(query.selectFrom('recovery_codes').select('user_id').where('user_id', '=', userId).where('code_hash', '=', hash)).length > 0;",
    tests: ['test/api/second-factors.test.ts'],
  },
  {
    name: 'wrong-codes-not-counted',
    file: 'control-plane/services/identity/factors/factor-guesses.ts',
    before: '  if (counted.wrong >= MOST_GUESSES) throw',
    after: '  if (counted.wrong >= 1_000 * MOST_GUESSES) throw',
    tests: ['test/api/second-factors.test.ts'],
  },
  {
    name: 'old-proof-taken',
    file: 'control-plane/services/identity/sessions/fresh-proof.ts',
    before: ' && tx.now - provenAt <= PROOF_MS) return;',
    after: ' && tx.now - provenAt <= 1_000 * PROOF_MS) return;',
    tests: ['test/api/second-factors.test.ts'],
  },
  {
    name: 'program-approved-without-a-proof',
    file: 'control-plane/services/identity/devices/approve-device.ts',
    before: '    checkFreshProof(tx, caller);\n',
    after: '    void checkFreshProof;\n',
    tests: ['test/api/device-codes.test.ts'],
  },
  {
    name: 'company-linked-without-a-proof',
    file: 'control-plane/services/identity/companies/identities.ts',
    before: '    checkFreshProof(tx, caller);\n',
    after: '    void checkFreshProof;\n',
    tests: ['test/api/company-proofs.test.ts'],
  },
  {
    name: 'factors-kept-by-a-claimed-account',
    file: 'control-plane/services/identity/operators/remove-user.ts',
    before: '  forgetFactorsOf(tx, id);\n  revokeKeysOf',
    after: '  void forgetFactorsOf;\n  revokeKeysOf',
    tests: ['test/api/company-accounts.test.ts'],
  },
  {
    name: 'session-without-a-factor-let-in',
    file: 'control-plane/http/access/policy.ts',
    before: "caller.lacksFactor && policy.noOrganization === 'refused')",
    after: "caller.lacksFactor && policy.noOrganization === 'refused' && policy.right === 'administer')",
    tests: ['test/api/factor-requirements.test.ts'],
  },
  {
    name: 'factors-removed-at-once',
    file: 'control-plane/domain/identity/second-factor.ts',
    before: 'export const REMOVAL_MS = 24 * HOUR_MS;',
    after: 'export const REMOVAL_MS = 0 * HOUR_MS;',
    tests: ['test/api/factor-removals.test.ts'],
  },
  {
    name: 'anything-taken-as-a-passkey-of-a-user-without-one',
    file: 'control-plane/services/identity/sign-in/prove.ts',
    before: ' && password === undefined && kinds.length > 0;',
    after: ' && password === undefined;',
    tests: ['test/api/second-factors.test.ts'],
  },
];
