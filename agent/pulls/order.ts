import type { PullRoute, Registry } from '../domain/registries.js';

/** The order that the agent sends to a relay, once. */
export interface RelayOrder extends Omit<PullRoute, 'registries'> {
  registries: (Registry & {
    /** Certificates (PEM) of authorities that are trusted there besides this machine's. */
    authorities: string[];
  })[];
  /** For the registry itself, not for its mirrors. */
  credentials: Credentials | null;
  /** Forbidden networks that the relay can reach all the same; null: it can reach every address. */
  allowed: readonly string[] | null;
  /** Most bytes that the relay passes on. */
  mostBytes: number;
  /** The password with which Docker must authenticate to the relay. */
  secret: string;
}

export interface Credentials {
  username: string;
  password: string;
}

/** The relay's reply to its order. */
export interface RelayReply {
  /** On 127.0.0.1. */
  port: number;
  pid: number;
}

/** User name, and name of the image, in Docker's requests to a relay. */
export const RELAY_USER = 'gpurent';
export const RELAY_REPOSITORY = 'gpurent/pulling';
