import { optional, text } from '../schema/schemas.js';
import { timeOf } from '../schema/times.js';

/** The parameters of a log for a period. */
export const Period = optional({
  since: text('Only what was done at this time or later, in ISO 8601 with a time zone', { format: 'date-time' }),
  until: text('Only what was done before this time', { format: 'date-time' }),
});

/** Returns a query with its period in milliseconds since 1970. Refuses a time that there is not with VALIDATION_FAILED. */
export function withPeriod<Query extends { since?: string; until?: string }>({ since, until, ...rest }: Query) {
  return {
    ...rest,
    ...(since === undefined ? {} : { since: timeOf('since', since) }),
    ...(until === undefined ? {} : { until: timeOf('until', until) }),
  };
}
