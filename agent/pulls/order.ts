import type { PullRoute, Registry } from '../domain/registries.js';

/** What the agent tells a relay, once. */
export interface RelayOrder extends Omit<PullRoute, 'registries'> {
  registries: (Registry & {
    /** Certificates, in PEM, of authorities that vouch for it beside this machine's. */
    authorities: string[];
  })[];
  /** For the registry that is no mirror. */
  credentials: Credentials | null;
  /** Forbidden networks that may be reached all the same; null: every address may be. */
  allowed: readonly string[] | null;
  /** Of all that it passes on. */
  mostBytes: number;
  /** What whoever asks the relay has to know. */
  secret: string;
}

export interface Credentials {
  username: string;
  password: string;
}

/** What a relay answers to that. */
export interface RelayReply {
  /** On 127.0.0.1. */
  port: number;
  pid: number;
}

/** By this user name, and this name of an image, Docker asks a relay. */
export const RELAY_USER = 'gpurent';
export const RELAY_REPOSITORY = 'gpurent/pulling';
