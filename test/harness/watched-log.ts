import type { Answer, Inspect } from './api-client.js';
import { createLogger, type Logger } from '../../shared/logger.js';

const SECRET = /^((\w+_)?secret|(\w+_)?token|(\w+_)?password)$/;
/** Shorter words may stand in any line by chance. */
const SHORTEST = 12;

/** Everything that is logged at any level, and the secrets that it must not tell: those of the API, and what else it is told of. */
export class WatchedLog {
  private readonly lines: string[] = [];
  private readonly secrets = new Set<string>();
  readonly logger: Logger = createLogger('test', 'trace', 'json', {
    write: (line) => void this.lines.push(line),
  });

  /** Learns secrets from what is asked and answered; for an ApiClient. */
  readonly inspect: Inspect = async (_, __, answer: Answer<unknown>, asked: unknown) => {
    this.learn(asked);
    this.learn(answer.body);
  };

  readonly atLeast = (level: number): string[] => {
    return this.lines.filter((line) => (JSON.parse(line) as { level: number }).level >= level);
  };

  /** Nothing of it is to be logged; what names an authority at the end of a token is none. */
  keepSecret(secret: string): void {
    const [word = ''] = secret.split('.');
    if (word.length >= SHORTEST) this.secrets.add(word);
  }

  /** Throws when a secret was logged, here or in `others`. */
  check(others: readonly string[] = []): void {
    const logged = [...this.lines, ...others].join('\n');
    for (const secret of this.secrets) {
      // As it is, and as a line of JSON would have it.
      const at = Math.max(logged.indexOf(secret), logged.indexOf(JSON.stringify(secret).slice(1, -1)));
      if (at >= 0) throw new Error(`a secret was logged: ${logged.slice(Math.max(0, at - 300), at + 100)}`);
    }
  }

  private learn(value: unknown, name = ''): void {
    if (typeof value === 'string') {
      this.keepSecret(SECRET.test(name) ? value : (/[?&]token=([^&]+)/.exec(value)?.[1] ?? ''));
    } else if (Array.isArray(value)) {
      for (const each of value) this.learn(each, name);
    } else if (typeof value === 'object' && value !== null) {
      // What a renter hands over in the environment may be anything.
      for (const [key, each] of Object.entries(value)) this.learn(each, name === 'env' ? 'secret' : key);
    }
  }
}
