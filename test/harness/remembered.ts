import { inspect, isDeepStrictEqual } from 'node:util';
import { SORTS } from '../../control-plane/services/catalogue/market-list.js';
import { Market } from '../../control-plane/services/catalogue/market.js';
import { Fleet } from '../../control-plane/services/oversight/fleet.js';
import type { App } from '../../control-plane/services/parts/parts.js';

/** Returns what the control plane remembers and would not make again as it is: that must be nothing. */
export function staleOf(platform: App): string[] {
  const memories = {
    credentials: platform.credentials,
    instances: platform.instanceViews,
    'pages of instances': platform.instancePages,
    lists: platform.instanceLists,
    'days of revenue': platform.revenueDays,
  };
  const remembered = Object.entries(memories).flatMap(([what, memory]) => {
    const compared: { key: string; remembered: unknown; present: unknown }[] = memory.compare();
    return compared
      .filter(({ remembered, present }) => !isDeepStrictEqual(remembered, present))
      .map(({ key, remembered, present }) => `${what}: ${key}: ${differenceOf(remembered, present)}`);
  });
  const wholes = {
    market: [sightOf(platform.market), sightOf(new Market(platform))],
    fleet: [machinesOf(platform.fleet), machinesOf(new Fleet(platform))],
  };
  const wrong = Object.entries(wholes)
    .filter(([, [known, fresh]]) => !isDeepStrictEqual(known, fresh))
    .map(([what, [known, fresh]]) => `${what}: ${differenceOf(known, fresh)}`);
  return [...remembered, ...wrong];
}

function machinesOf(fleet: Fleet): unknown {
  return Object.fromEntries(
    Array.from(fleet.machines(), ({ machine, models }) => [
      machine.id,
      { machine, models: Object.fromEntries(models) },
    ]),
  );
}

/** What renters see of a market; when its hosts were last seen they do not. */
function sightOf(market: Market): unknown {
  const lists = SORTS.map((sort) => market.offers({ sort }));
  const text = JSON.stringify({ lists, counts: market.count({}), status: market.status() }, (key, value: unknown) =>
    key === 'last_seen_at' ? undefined : value,
  );
  return JSON.parse(text);
}
const MOST_SHOWN = 300;

/** Tells where two values differ first, and what they are there. */
function differenceOf(remembered: unknown, present: unknown, path = ''): string {
  if (isTree(remembered) && isTree(present))
    for (const key of new Set([...Object.keys(remembered), ...Object.keys(present)]))
      if (!isDeepStrictEqual(remembered[key], present[key]))
        return differenceOf(remembered[key], present[key], `${path}.${key}`);
  const shown = (value: unknown) => inspect(value).slice(0, MOST_SHOWN);
  return `${path} remembered ${shown(remembered)}, present ${shown(present)}`;
}

function isTree(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
