import { isVendorVariable } from '../../shared/gpu-vendors.js';

export interface EnvEntry {
  key: string;
  value: string | null;
  secret: boolean;
}

export interface OverlayFacts {
  numGpus: number;
  /** Null for a template that uses none. */
  accessToken: string | null;
}

/** In a template's value, stands for the instance's access token. */
export const ACCESS_TOKEN_PLACEHOLDER = '${SERVICE_ACCESS_TOKEN}';

/**
 * The environment of a workload: the template's, the renter's overrides over it, the platform's overlay over both.
 * An override whose value is null leaves the template's value. What belongs to a GPU vendor's runtime (`NVIDIA_*`) is dropped.
 */
export function mergeEnvironment(
  template: readonly EnvEntry[],
  overrides: readonly EnvEntry[],
  facts: OverlayFacts,
): { key: string; value: string }[] {
  const merged = new Map<string, string>();
  for (const { key, value } of [...template, ...overrides]) if (value !== null) merged.set(key, value);
  for (const { key, value } of template)
    if (value !== null && carriesToken(value)) merged.set(key, withToken(value, facts));
  for (const [key, value] of overlay(facts)) {
    // Last, also in order: whoever reads the list from the end finds the platform's own.
    merged.delete(key);
    if (value !== null) merged.set(key, value);
  }
  return [...merged].filter(([key]) => !isVendorVariable(key)).map(([key, value]) => ({ key, value }));
}

function overlay({ numGpus, accessToken }: OverlayFacts): [string, string | null][] {
  return [
    ['GPU_COUNT', String(numGpus)],
    ['SERVICE_ACCESS_TOKEN', accessToken],
    ['JUPYTER_TOKEN', accessToken],
  ];
}

function carriesToken(value: string): boolean {
  return value.includes(ACCESS_TOKEN_PLACEHOLDER);
}

function withToken(value: string, { accessToken }: OverlayFacts): string {
  return value.replaceAll(ACCESS_TOKEN_PLACEHOLDER, accessToken ?? '');
}
