import { DOCKER_HUB, canonicalName, type ImageReference } from '../../shared/image-reference.js';

/** The fields of `docker info` about registries that the agent uses. */
export interface DockerRegistries {
  HttpProxy?: string;
  HttpsProxy?: string;
  RegistryConfig?: {
    InsecureRegistryCIDRs?: string[] | null;
    IndexConfigs?: Record<string, { Secure?: boolean } | undefined> | null;
    /** Mirrors of Docker Hub. */
    Mirrors?: string[] | null;
  } | null;
}

export interface Registry {
  /** `https://HOST[:PORT]`, or http if Docker's configuration lists it as insecure. */
  origin: string;
  /** Whether the host owner configured it as a mirror. A mirror can be at any address, and never gets a renter's credentials. */
  isMirror: boolean;
}

/** The registries from which an image can be pulled. */
export interface PullRoute {
  /** In the order to try them; the last is the image's own. */
  registries: Registry[];
  repository: string;
  /** A tag or a digest. */
  reference: string;
  /** Networks in which Docker uses registries without TLS, in CIDR notation. */
  insecureNetworks: string[];
}

/** The host name of Docker Hub's registry. */
const HUB_HOST = 'registry-1.docker.io';
const MOST_MIRRORS = 4;

/** Returns the registries in which Docker itself would look for an image. */
export function pullRoute(image: ImageReference, { RegistryConfig }: DockerRegistries): PullRoute {
  const { registry, repository } = canonicalName(image);
  const isHub = registry === DOCKER_HUB;
  const isSecure = RegistryConfig?.IndexConfigs?.[registry]?.Secure !== false;
  const mirrors = isHub ? (RegistryConfig?.Mirrors ?? []).slice(0, MOST_MIRRORS) : [];
  return {
    registries: [
      ...mirrors.map((origin) => ({ origin, isMirror: true })),
      { origin: isHub ? `https://${HUB_HOST}` : `${isSecure ? 'https' : 'http'}://${registry}`, isMirror: false },
    ],
    repository,
    reference: image.digest ?? image.tag ?? 'latest',
    insecureNetworks: RegistryConfig?.InsecureRegistryCIDRs ?? [],
  };
}

/** Tells whether Docker uses a proxy for registries. A proxy resolves names itself, so the agent's checks of addresses do not hold. */
export function pullsThroughProxy({ HttpProxy, HttpsProxy }: DockerRegistries): boolean {
  return Boolean(HttpProxy) || Boolean(HttpsProxy);
}
