/** The shell blocks of the guides, and where each is run: `guides.test.ts` by day, `guide-services.test.ts` at night. */
export const BY_DAY = [
  'operator.md: Install',
  'operator.md: Console, command line, curl',
  'operator.md: Console, command line, curl (2)',
  'operator.md: From an empty control plane to the first renter',
  'operator.md: From an empty control plane to the first renter (2)',
  'operator.md: Add a machine',
  'operator.md: Add a machine (2)',
  'operator.md: A machine that leaves',
  'operator.md: A machine that leaves (2)',
  'operator.md: Who rents',
  'operator.md: Backups',
  'operator.md: Backups (2)',
  'operator.md: The secret key',
  'day-two.md: What to keep copies of',
  'day-two.md: The key is lost',
  'day-two.md: Workloads left on a host',
  'day-two.md: Drop-ins without an editor',
  'day-two.md: Drop-ins without an editor (2)',
  'host-owner.md: Install',
  'renter.md: With the API',
];

/** They need packages that the machine of the day does not have. */
export const AT_NIGHT = [
  'README.md: Use it',
  'operator.md: Console, command line, curl',
  'operator.md: Console, command line, curl (2)',
  'operator.md: From an empty control plane to the first renter',
  'operator.md: From an empty control plane to the first renter (2)',
  'day-two.md: A proxy before the API',
  'day-two.md: A proxy before the API (2)',
  'day-two.md: Firewalls',
  'day-two.md: Firewalls (2)',
  'day-two.md: Firewalls (3)',
  'day-two.md: Prometheus and Grafana',
  'renter.md: With the API',
];

/** With the reason. */
export const NOT_RUN: Record<string, string> = {
  'README.md: Try it':
    'works in the sources: scripts/test --nightly runs quickstart --once, and scripts/test is what runs this',
  'operator.md: Add a machine (3)':
    'needs the id of a token; test/api/usable-tokens.test.ts lists and revokes tokens so',
  'operator.md: A host that you no longer trust':
    'needs the id of a machine; test/machine/install.test.ts lets one in again so, where credentials were revoked',
  "operator.md: Companies' sign-ins":
    'needs an organization and the sign-in of a company; test/api/issuers.test.ts sets one with these fields',
  'renter.md: On the command line':
    'the machine has no npm, and a person approves the sign-in; test/e2e/command-line.test.ts runs these commands',
};
