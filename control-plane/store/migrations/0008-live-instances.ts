/** An organization's instances, without those that are destroyed, are read in order without a look at these. */
export const liveInstances = `
DROP INDEX instances_live_by_organization;
CREATE INDEX instances_live_by_organization ON instances (organization_id, created_at) WHERE status <> 'destroyed';
`;
