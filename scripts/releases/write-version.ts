import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildVersion } from './build-version.js';
import { Checkout, ROOT } from './checkout.js';

// Writes into `dist` what this build is; programs read it at their start.
const checkout = new Checkout(ROOT);
const version = buildVersion(checkout.declared, checkout.commit());
writeFileSync(join(ROOT, 'dist/build.json'), `${JSON.stringify({ version })}\n`);
