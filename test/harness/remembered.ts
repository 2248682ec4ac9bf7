import { isDeepStrictEqual } from 'node:util';
import { credentialsOf } from '../../control-plane/services/accounts/authenticate.js';
import { instancePages, instanceViews } from '../../control-plane/services/actions/read.js';
import type { Platform } from '../../control-plane/services/system/platform.js';

/** Returns what the control plane remembers and would not make again as it is: that must be nothing. */
export function staleOf(platform: Platform): string[] {
  const memories = { credentials: credentialsOf, instances: instanceViews, 'pages of instances': instancePages };
  return Object.entries(memories).flatMap(([what, memory]) => {
    const compared: { key: string; remembered: unknown; present: unknown }[] = memory(platform).compare();
    return compared
      .filter(({ remembered, present }) => !isDeepStrictEqual(remembered, present))
      .map(({ key, remembered, present }) => `${what}: ${key}: ${differenceOf(remembered, present)}`);
  });
}

function differenceOf(remembered: unknown, present: unknown): string {
  return `remembered ${JSON.stringify(remembered)}, present ${JSON.stringify(present)}`;
}
