import { COMPANY_SIGN_IN_MS } from '../../domain/identity/company.js';
import { makeInstanceLists, makeInstancePages, makeInstanceViews } from '../actions/remembered-instances.js';
import type { HasInstanceMemory } from '../actions/remembered-instances.js';
import { makeRevenueDays, type HasRevenueDays } from '../billing/reports/revenue-days.js';
import { makeMarket, type HasMarket } from '../catalogue/market.js';
import { ReportBudget } from '../connections/report-budget.js';
import { HostBudgets, type HasHostBudgets } from '../events/host-budget.js';
import { EventHub } from '../events/hub.js';
import type { HasAssertedAccounts } from '../identity/companies/asserted-accounts.js';
import { ShortLived } from '../identity/companies/short-lived.js';
import { PollPace } from '../identity/devices/open-device-session.js';
import { makeCredentials, type HasCredentials } from '../identity/sessions/authenticate.js';
import { makeSessionLinks, type HasSessionLinks } from '../identity/sessions/session-links.js';
import type { HasBegunSignIns } from '../identity/sign-in/begun-sign-ins.js';
import { RenewalTries, type HasRenewalTries } from '../identity/sign-in/renew-session.js';
import { MeasurementMemory, type HasMeasurements } from '../measurements/memory.js';
import { MeasurementQueries, type HasMeasurementQueries } from '../measurements/queries.js';
import { makeFleet, type HasFleet } from '../oversight/fleet.js';
import type { Platform } from '../system/platform.js';
import { ChangedStreams, type HasChangedStreams } from '../webhooks/streams.js';

/** What the control plane keeps in memory beside the database, since its start: after a restart all of it begins anew. */
export interface Parts
  extends
    HasInstanceMemory,
    HasRevenueDays,
    HasMarket,
    HasFleet,
    HasHostBudgets,
    HasMeasurements,
    HasMeasurementQueries,
    HasChangedStreams,
    HasCredentials,
    HasSessionLinks,
    HasAssertedAccounts,
    HasBegunSignIns,
    HasRenewalTries {
  hub: EventHub;
  /** How often hosts may report what their doctor has found. */
  findingBudget: ReportBudget;
  /** How often programs may ask for the session of a device code. */
  pollPace: PollPace;
}

/** All parts of the control plane. */
export type App = Platform & Parts;

/** Makes the parts of a control plane. */
export function makeParts(platform: Platform): Parts {
  const { store, clock, defer } = platform;
  const instanceViews = makeInstanceViews(platform);
  const instanceLists = makeInstanceLists(platform);
  return {
    instanceViews,
    instanceLists,
    instancePages: makeInstancePages(platform, instanceLists, instanceViews),
    revenueDays: makeRevenueDays(platform),
    market: makeMarket(platform),
    fleet: makeFleet(platform),
    hub: new EventHub({ store, defer }),
    hostBudgets: new HostBudgets(clock),
    findingBudget: new ReportBudget(clock),
    measurements: new MeasurementMemory(clock),
    measurementQueries: new MeasurementQueries(platform),
    changedStreams: new ChangedStreams(store),
    credentials: makeCredentials(platform),
    sessionLinks: makeSessionLinks(),
    assertedAccounts: new ShortLived(clock, COMPANY_SIGN_IN_MS),
    begunSignIns: new ShortLived(clock, COMPANY_SIGN_IN_MS),
    renewalTries: new RenewalTries(clock),
    pollPace: new PollPace(clock),
  };
}
