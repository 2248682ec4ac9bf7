import { DOCKER_HUB, canonicalName, type ImageReference } from '../../shared/image-reference.js';

/** What `docker info` says of registries, as far as it is of interest here. */
export interface DockerRegistries {
  HttpProxy?: string;
  HttpsProxy?: string;
  RegistryConfig?: {
    InsecureRegistryCIDRs?: string[] | null;
    IndexConfigs?: Record<string, { Secure?: boolean } | undefined> | null;
    /** Of Docker Hub. */
    Mirrors?: string[] | null;
  } | null;
}

export interface Registry {
  /** `https://HOST[:PORT]`, or http, where Docker's configuration names it so. */
  origin: string;
  /** This host's owner has named it: it may be at any address. It is never given a renter's credentials. */
  isMirror: boolean;
}

/** Where an image is to be had. */
export interface PullRoute {
  /** To be tried in this order; the last is the image's own. */
  registries: Registry[];
  repository: string;
  /** A tag or a digest. */
  reference: string;
  /** Networks in which Docker speaks to registries without TLS, in CIDR notation. */
  insecureNetworks: string[];
}

/** By which Docker Hub is reached. */
const HUB_HOST = 'registry-1.docker.io';
const MOST_MIRRORS = 4;

/** Where Docker itself would look for an image. */
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

/** Docker reaches registries through a proxy, which resolves their names: nothing that we check would hold for it. */
export function pullsThroughProxy({ HttpProxy, HttpsProxy }: DockerRegistries): boolean {
  return Boolean(HttpProxy) || Boolean(HttpsProxy);
}
