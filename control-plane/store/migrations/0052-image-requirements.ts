/** Adds what images require of NVIDIA's driver, as the machines say that have pulled them. */
export const imageRequirements = `
CREATE TABLE image_requirements (
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  -- The reference under which an instance of the organization was deployed, with its tag or digest.
  image TEXT NOT NULL,
  -- Who says it: each machine for itself.
  machine_id TEXT NOT NULL REFERENCES machines (id),
  digest TEXT NOT NULL,
  -- A line for each requirement; empty: none.
  requirements TEXT NOT NULL,
  told_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, image, machine_id)
) STRICT;
CREATE INDEX image_requirements_by_digest ON image_requirements (organization_id, digest);
CREATE INDEX image_requirements_of_organization ON image_requirements (organization_id, told_at);
CREATE INDEX image_requirements_by_age ON image_requirements (told_at);
`;
