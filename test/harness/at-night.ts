/** Whether this is the nightly run, in which tests also make visits that others make by day in another way. */
export const isNight = process.env['TEST_NIGHTLY'] === '1';
