import { expect, it } from 'vitest';
import { concerning } from '../../agent/domain/advisories.js';

it.each([
  ['runc', '1.1.5', '1.1.5+ds1-1+b1', 'CVE-2024-21626? CVE-2025-31133?'],
  ['runc', '1.1.5', '1.1.5+ds1-1+deb12u1', 'CVE-2025-31133?'],
  ['runc', '1.1.5', '1.1.5+ds1-1+deb12u3', 'CVE-2025-31133?'],
  ['runc', '1.1.5', '1.1.5+ds1-1', 'CVE-2024-21626? CVE-2025-31133?'],
  ['runc', '1.1.5', '1.1.5+ds1-9-1', 'CVE-2024-21626? CVE-2025-31133?'],
  ['runc', '1.1.5', '1.1.5-0+deb12u9', 'CVE-2024-21626? CVE-2025-31133?'],
  ['runc', '1.1.5', '1.1.5-0ubuntu1', 'CVE-2024-21626? CVE-2025-31133?'],
  ['runc', '1.1.5', '1.1.5-1', 'CVE-2024-21626 CVE-2025-31133'],
  ['runc', '1.1.4', '1.1.4+ds1-9', 'CVE-2024-21626? CVE-2025-31133?'],
  ['runc', '1.1.11', null, 'CVE-2024-21626 CVE-2025-31133'],
  ['runc', '1.1.12', null, 'CVE-2025-31133'],
  ['runc', '1.2.7', null, 'CVE-2025-31133'],
  ['runc', '1.2.8', null, ''],
  ['runc', '1.3.2', null, 'CVE-2025-31133'],
  ['runc', '1.4.0', null, ''],
  ['docker', '20.10.8', null, 'CVE-2021-41091'],
  ['docker', '20.10.24', '20.10.24+dfsg1-1+deb12u1', ''],
  ['docker', '28.0.1', null, ''],
  ['nvidia-container-toolkit', '1.16.2', '1.16.2-1', 'CVE-2025-23266'],
  ['nvidia-container-toolkit', '1.17.8', '1.17.8-1', ''],
] as const)('%s %s, packaged as %s, has the holes: %s', (program, version, packaged, expected) => {
  const found = concerning(program, { version, packaged }).map(({ id, unsure }) => id + (unsure ? '?' : ''));
  expect(found.join(' ')).toBe(expected);
});
