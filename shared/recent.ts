import { LRUCache } from 'lru-cache';

/**
 * Creates a cache of at most `most` values that forgets the one that was used longest ago. With the library's option `max` it
 * would take the memory of all of them at once.
 */
export function recent<Value extends object>(most: number): LRUCache<string, Value> {
  return new LRUCache<string, Value>({ maxSize: most, sizeCalculation: () => 1 });
}
