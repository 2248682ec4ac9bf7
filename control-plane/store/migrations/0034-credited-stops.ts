/**
 * Earlier releases set `written_off_micro` of a credited interval to zero. It follows from the charges of its instance, and is given to
 * the newest interval that was credited: nobody knows how much of it was of which.
 */
export const recoverWrittenOff = `
WITH credited AS (SELECT instance_id, max(id) AS id FROM meter_intervals WHERE credited_ms > 0 GROUP BY instance_id),
  written_off AS (
    SELECT credited.id,
      -- In two parts, so that no product is too large for an integer.
      price_per_hour_micro * (gpu_settled_ms / 3600000) + price_per_hour_micro * (gpu_settled_ms % 3600000) / 3600000
      + coalesce((SELECT sum(amount_micro) FROM transactions WHERE instance_id = instances.id AND meter = 'gpu'), 0)
      - (SELECT sum(written_off_micro) FROM meter_intervals WHERE instance_id = instances.id AND meter = 'gpu') AS micro
    FROM credited JOIN instances ON instances.id = credited.instance_id)
UPDATE meter_intervals SET
  written_off_micro = written_off_micro + written_off.micro,
  credited_written_off_micro = written_off.micro
FROM written_off WHERE written_off.id = meter_intervals.id AND written_off.micro > 0;
`;

/** Lets the credit for an ignored stop leave what was written off as it is: charges can be calculated only with it. */
export const creditedStops = `
ALTER TABLE meter_intervals ADD COLUMN credited_written_off_micro INTEGER NOT NULL DEFAULT 0;
${recoverWrittenOff}
`;
