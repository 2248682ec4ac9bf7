import { isVendorVariable } from '../../../shared/gpus/gpu-vendors.js';

export interface EnvEntry {
  key: string;
  value: string | null;
  secret: boolean;
}

export interface OverlayFacts {
  numGpus: number;
  /** Null for a template that uses no access token. */
  accessToken: string | null;
}

/** In the value of a template's variable: replaced by the instance's access token. */
export const ACCESS_TOKEN_PLACEHOLDER = '${SERVICE_ACCESS_TOKEN}';

/**
 * Returns the environment of a workload: the template's variables, then the renter's overrides, then the platform's own variables, each
 * replacing the ones before. An override whose value is null leaves the template's value. Variables of a GPU vendor's runtime
 * (`NVIDIA_*`) are dropped, because only the host sets them: they choose the GPUs of a container.
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
    // Deleted first, so that the platform's variables also come last in the list: some programs read it from the end.
    merged.delete(key);
    if (value !== null) merged.set(key, value);
  }
  return [...merged].filter(([key]) => !isVendorVariable(key)).map(([key, value]) => ({ key, value }));
}

/** Returns an environment without its values, for readers who may not see them. */
export function withoutValues(entries: readonly EnvEntry[]): EnvEntry[] {
  return entries.map((entry) => ({ ...entry, value: null }));
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
