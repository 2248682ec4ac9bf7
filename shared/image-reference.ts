/** The name of a container image in the grammar of the distribution project: `[registry/]repository[:tag][@digest]`. */
export interface ImageReference {
  /** `host[:port]`; null: Docker Hub. */
  registry: string | null;
  repository: string;
  tag: string | null;
  digest: string | null;
}

/** The longest registry and repository together, in characters. */
const MAX_NAME = 255;
export const MAX_REFERENCE = 512;

/** The name of Docker Hub in image references. */
export const DOCKER_HUB = 'docker.io';
const HUB_NAMES: readonly (string | null)[] = [null, DOCKER_HUB, 'index.docker.io'];

const LABEL = '[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?';
const HOST = `(?:${LABEL}(?:\\.${LABEL})*|\\[[a-fA-F0-9:]+\\])`;
const REGISTRY = new RegExp(`^${HOST}(?::[0-9]{1,5})?$`);
const COMPONENT = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*';
const REPOSITORY = new RegExp(`^${COMPONENT}(?:/${COMPONENT})*$`);
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^[a-z][a-z0-9]*(?:[-_+.][a-z][a-z0-9]*)*:[a-f0-9]{32,128}$/i;
/** Docker reads this as an image id, not as a name. */
const IDENTITY = /^[a-f0-9]{64}$/;

/** Parses a reference. Returns undefined for an invalid one, which must never be part of a request to Docker. */
export function parseImageReference(text: string): ImageReference | undefined {
  if (text.length > MAX_REFERENCE || IDENTITY.test(text)) return undefined;
  const [beforeDigest = '', digest = null, ...rest] = text.split('@');
  if (rest.length > 0 || (digest !== null && !DIGEST.test(digest))) return undefined;
  const colon = beforeDigest.lastIndexOf(':');
  const hasTag = colon > beforeDigest.lastIndexOf('/');
  const [name, tag] = hasTag ? [beforeDigest.slice(0, colon), beforeDigest.slice(colon + 1)] : [beforeDigest, null];
  if (name.length > MAX_NAME || (tag !== null && !TAG.test(tag))) return undefined;
  const slash = name.indexOf('/');
  const first = slash < 0 ? '' : name.slice(0, slash);
  // Docker's own rule to tell a registry from the first part of a repository.
  const hasRegistry = /[.:A-Z]/.test(first) || first === 'localhost';
  const [registry, repository] = hasRegistry ? [first, name.slice(slash + 1)] : [null, name];
  if ((registry !== null && !REGISTRY.test(registry)) || !REPOSITORY.test(repository)) return undefined;
  return { registry, repository, tag, digest };
}

/** Returns the one form of a registry and repository that can have several names: `debian` is `docker.io/library/debian`. */
export function canonicalName({ registry, repository }: ImageReference): { registry: string; repository: string } {
  if (registry !== null && !HUB_NAMES.includes(registry)) return { registry: registry.toLowerCase(), repository };
  return { registry: DOCKER_HUB, repository: repository.includes('/') ? repository : `library/${repository}` };
}
