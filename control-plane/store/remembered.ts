import type { LRUCache } from 'lru-cache';
import { recent } from '../../shared/recent.js';
import type { Store } from './store.js';

/** The variants of one key that are remembered at once. */
const MOST_VARIANTS = 16;

/**
 * Values that are made of stored rows alone, each remembered until one of these rows changes. `make` makes the value of a key; a key can
 * have variants, such as pages of different lengths. At most `most` keys are remembered.
 */
export class Remembered<Value extends object> {
  private readonly known: LRUCache<string, Map<string, Value>>;

  constructor(
    private readonly store: Store,
    most: number,
    private readonly make: (key: string, variant: string) => Value | undefined,
  ) {
    this.known = recent(most);
    store.onUnknownChange(() => this.known.clear());
  }

  /** Returns the remembered value, or makes it and remembers it. What a use case reads after it has written is not remembered. */
  of(key: string, variant = ''): Value | undefined {
    const known = this.known.get(key);
    const value = known?.get(variant) ?? this.make(key, variant);
    if (value && !this.store.isWriting()) this.remember(key, known, variant, value);
    return value;
  }

  forget(key: string): void {
    this.known.delete(key);
  }

  /** Forgets every value for which `isOver` returns true: for changes that are seldom, because it looks at all. */
  forgetIf(isOver: (value: Value) => boolean): void {
    for (const [key, variants] of this.known.entries())
      for (const value of variants.values()) if (isOver(value)) this.known.delete(key);
  }

  /** Returns every remembered value beside the one that would be made now, for the test that they are equal. */
  compare(): { key: string; remembered: Value; present: Value | undefined }[] {
    return [...this.known.entries()].flatMap(([key, variants]) =>
      [...variants].flatMap(([variant, remembered]) => {
        const present = this.make(key, variant);
        // Even a read can notice a step of the clock, which changes rows.
        return this.known.get(key)?.get(variant) === remembered ? [{ key, remembered, present }] : [];
      }),
    );
  }

  private remember(key: string, known: Map<string, Value> | undefined, variant: string, value: Value): void {
    if (known?.get(variant) === value) return;
    const variants = known === undefined || known.size >= MOST_VARIANTS ? new Map<string, Value>() : known;
    this.known.set(key, variants.set(variant, value));
  }
}

/** Returns a function that makes one value for each owner, at its first use, and returns the same one from then on. */
export function oncePer<Owner extends object, T extends object>(make: (owner: Owner) => T): (owner: Owner) => T {
  const made = new WeakMap<Owner, T>();
  return (owner) => {
    const known = made.get(owner) ?? make(owner);
    made.set(owner, known);
    return known;
  };
}
