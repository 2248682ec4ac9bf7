import { Type } from 'typebox';
import { LONGEST_OF_FINDING, MOST_FINDINGS } from '../../../../shared/finding.js';
import { getFindings } from '../../../services/machines/findings.js';
import { OPERATOR } from '../../access/policy.js';
import { choice, flag, isoOrNull, list, nullable, text, timestamp } from '../../schema/schemas.js';
import { idOf, type Routes } from '../routes.js';

const Finding = Type.Object(
  {
    check: text('The name of the check; a check can have several findings', { maxLength: LONGEST_OF_FINDING.check }),
    verdict: choice(
      ['ok', 'warning', 'failure'],
      '`warning`: it works, but should be improved; `failure`: renters cannot be served, or not safely',
    ),
    what: text('What the check has found', { maxLength: LONGEST_OF_FINDING.what }),
    advice: nullable(
      text('What the host owner can do about it; null: nothing', { maxLength: LONGEST_OF_FINDING.advice }),
    ),
  },
  { title: 'Finding' },
);

const MachineFindings = Type.Object(
  {
    supported: flag('Whether its agent reports findings: agents of older releases do not'),
    reported_at: nullable(timestamp('When its host reported the findings; null: not yet')),
    findings: list(Finding, `At most ${MOST_FINDINGS}, as the host has reported them`),
  },
  { title: 'MachineFindings' },
);

/** Routes for operators: what the doctor finds on hosts. */
export const findingRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/operator/machines/:id/findings',
    {
      config: { policy: OPERATOR, refusals: ['MACHINE_NOT_FOUND'] },
      schema: {
        operationId: 'getMachineFindings',
        summary: 'Get what the doctor has found on the host of a machine',
        description:
          'What `gpurent-agent doctor` prints on the host. The agent reports it after it has started, after a change of the health of the host, and every ten minutes. It is what the host says: neither offers nor charges depend on it.',
        params: idOf('machine'),
        response: { 200: MachineFindings },
      },
    },
    (request) => {
      const { reported_at, ...rest } = getFindings(platform, request.params.id);
      return { ...rest, reported_at: isoOrNull(reported_at) };
    },
  );
};
