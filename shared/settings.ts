import { SetupError } from './coded-error.js';

/** Reads the settings of a program. Each refusal is a SetupError that names the setting, its value and what to give. */
export class Settings<Name extends string> {
  constructor(
    private readonly environment: Readonly<Record<string, string | undefined>>,
    private readonly defaults: Readonly<Record<Name, string>>,
  ) {}

  /** Returns what is set, or else the default. */
  text(name: Name): string {
    return this.environment[name] || this.defaults[name];
  }

  /** Returns the text; undefined if it is empty. */
  optional(name: Name): string | undefined {
    return this.text(name) || undefined;
  }

  oneOf<Value extends string>(
    name: Name,
    values: readonly Value[],
    advice = `give one of ${values.join(', ')}`,
  ): Value {
    return values.find((value) => value === this.text(name)) ?? this.refuse(name, advice);
  }

  /** Returns a whole number from `least` to `most`. */
  whole(name: Name, { least = 1, most, such }: { least?: number; most: number; such: number }): number {
    const text = this.text(name);
    const number = Number(text);
    if (/^(?:0|[1-9]\d*)$/.test(text) && number >= least && number <= most) return number;
    return this.refuse(name, `give a whole number from ${least} to ${most}, such as ${such}`);
  }

  /** Returns the parts between the commas, without empty ones. Refuses a part that is not `valid`. */
  list(name: Name, valid: (part: string) => unknown, advice: string): string[] {
    const parts = this.text(name)
      .split(',')
      .map((part) => part.trim())
      .filter(Boolean);
    const wrong = parts.find((part) => !valid(part));
    if (wrong === undefined) return parts;
    throw new SetupError(`${name} names "${wrong}"; ${advice}`);
  }

  refuse(name: Name, advice: string): never {
    throw new SetupError(`${name} is "${this.text(name)}"; ${advice}`);
  }
}
