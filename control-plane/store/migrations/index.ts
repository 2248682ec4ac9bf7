import { initial } from './0001-initial.js';
import { expiry } from './0002-expiry.js';
import { runs } from './0003-runs.js';
import { slowImages } from './0004-slow-images.js';
import { access } from './0005-access.js';
import { gpuOwners } from './0006-gpu-owners.js';
import { money } from './0007-money.js';
import { liveInstances } from './0008-live-instances.js';
import { origin } from './0009-origin.js';
import { plainNames } from './0010-plain-names.js';
import { seams } from './0011-seams.js';
import { boundedReads } from './0012-bounded-reads.js';
import { openCommands } from './0013-open-commands.js';
import { events } from './0014-events.js';
import { webhooks } from './0015-webhooks.js';
import { mail } from './0016-mail.js';
import { spendLimits } from './0017-spend-limits.js';
import { schedules } from './0018-schedules.js';
import { chargeDays } from './0019-charge-days.js';
import { measurements } from './0020-measurements.js';
import { idleStop } from './0021-idle-stop.js';
import { earlierLimits } from './0022-earlier-limits.js';
import { keysAndRoles } from './0023-keys-and-roles.js';
import { browserSessions } from './0024-browser-sessions.js';
import { operatorsAct } from './0025-operators-act.js';
import { accountLinks } from './0026-account-links.js';
import { deviceCodes } from './0027-device-codes.js';
import { companyAccounts } from './0028-company-accounts.js';
import { secondFactors } from './0029-second-factors.js';
import { sshHostKey } from './0030-ssh-host-key.js';
import { organizationNames } from './0031-organization-names.js';
import { findings } from './0032-findings.js';
import { auditFilters } from './0033-audit-filters.js';
import { creditedStops } from './0034-credited-stops.js';
import { usableTokens } from './0035-usable-tokens.js';
import { pagedLists } from './0036-paged-lists.js';
import { waitingInstances } from './0037-waiting-instances.js';
import { endedRows } from './0038-ended-rows.js';
import { capRows } from './0039-cap-rows.js';
import { makers } from './0040-makers.js';
import { runFloors } from './0041-run-floors.js';
import { silentHosts } from './0042-silent-hosts.js';
import { strangers } from './0043-strangers.js';
import { ownedGpus } from './0044-owned-gpus.js';

export interface Migration {
  name: string;
  sql: string;
}

/** All migrations. The position is the schema version; a released migration never changes. */
export const migrations: readonly Migration[] = [
  { name: '0001-initial', sql: initial },
  { name: '0002-expiry', sql: expiry },
  { name: '0003-runs', sql: runs },
  { name: '0004-slow-images', sql: slowImages },
  { name: '0005-access', sql: access },
  { name: '0006-gpu-owners', sql: gpuOwners },
  { name: '0007-money', sql: money },
  { name: '0008-live-instances', sql: liveInstances },
  { name: '0009-origin', sql: origin },
  { name: '0010-plain-names', sql: plainNames },
  { name: '0011-seams', sql: seams },
  { name: '0012-bounded-reads', sql: boundedReads },
  { name: '0013-open-commands', sql: openCommands },
  { name: '0014-events', sql: events },
  { name: '0015-webhooks', sql: webhooks },
  { name: '0016-mail', sql: mail },
  { name: '0017-spend-limits', sql: spendLimits },
  { name: '0018-schedules', sql: schedules },
  { name: '0019-charge-days', sql: chargeDays },
  { name: '0020-measurements', sql: measurements },
  { name: '0021-idle-stop', sql: idleStop },
  { name: '0022-earlier-limits', sql: earlierLimits },
  { name: '0023-keys-and-roles', sql: keysAndRoles },
  { name: '0024-browser-sessions', sql: browserSessions },
  { name: '0025-operators-act', sql: operatorsAct },
  { name: '0026-account-links', sql: accountLinks },
  { name: '0027-device-codes', sql: deviceCodes },
  { name: '0028-company-accounts', sql: companyAccounts },
  { name: '0029-second-factors', sql: secondFactors },
  { name: '0030-ssh-host-key', sql: sshHostKey },
  { name: '0031-organization-names', sql: organizationNames },
  { name: '0032-findings', sql: findings },
  { name: '0033-audit-filters', sql: auditFilters },
  { name: '0034-credited-stops', sql: creditedStops },
  { name: '0035-usable-tokens', sql: usableTokens },
  { name: '0036-paged-lists', sql: pagedLists },
  { name: '0037-waiting-instances', sql: waitingInstances },
  { name: '0038-ended-rows', sql: endedRows },
  { name: '0039-cap-rows', sql: capRows },
  { name: '0040-makers', sql: makers },
  { name: '0041-run-floors', sql: runFloors },
  { name: '0042-silent-hosts', sql: silentHosts },
  { name: '0043-strangers', sql: strangers },
  { name: '0044-owned-gpus', sql: ownedGpus },
];
