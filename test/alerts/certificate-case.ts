import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DAY_MS } from '../../shared/time.js';
import { certificateFor } from '../harness/certificate.js';
import type { AlertCase } from './cases.js';

/** The certificate that the operator has given to the control plane ends. */
export const certificateEnds: AlertCase = {
  how: 'the certificate for TLS ends in a week',
  summary: /^The certificate "server" of the control plane is valid for 6d 23h \d+m \d+s$/,
  async provoke({ controlPlane: test, folder }) {
    const files = { certificate: join(folder, 'certificate.pem'), key: join(folder, 'key.pem') };
    const issue = async (ms: number) => {
      const issued = await certificateFor('gpus.example', new Date(test.clock.now() + ms));
      writeFileSync(files.certificate, issued.certificate);
      writeFileSync(files.key, issued.key);
    };
    await issue(7 * DAY_MS - 1_000);
    await test.restart({ tls: { http: false, grpc: true, names: [], files } });
    return async () => {
      await issue(90 * DAY_MS);
      await test.core.reload();
    };
  },
};
