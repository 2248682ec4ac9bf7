import { versionFault } from './build-version.js';
import { Checkout, MANIFESTS, ROOT } from './checkout.js';

// Refuses a checkout that calls itself a release that it is not.
const checkout = new Checkout(ROOT);
const { declared } = checkout;
const others = MANIFESTS.filter((manifest) => checkout.versionIn(manifest) !== declared);
const fault =
  others.length > 0
    ? `package.json says ${declared}, and ${others.join(', ')} another version; run: npm run set-version -- ${declared}`
    : versionFault(declared, checkout.release, checkout.commit());
if (fault !== undefined) {
  process.stderr.write(`${fault}\n`);
  process.exitCode = 1;
}
