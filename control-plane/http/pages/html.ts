/** A piece of a page. Only {@link html} makes it, so every value in it is escaped. */
export class Html {
  private constructor(readonly text: string) {}

  static of(texts: readonly string[], parts: readonly Part[]): Html {
    const pieces = texts.map((text, index) => {
      if (index === 0) return text;
      return valueOf(texts[index - 1] ?? '', parts[index - 1]) + text;
    });
    return new Html(pieces.join(''));
  }
}

/** What can stand in a template: null, undefined and false are left out, and lists are written without anything between. */
export type Part = Html | string | number | null | undefined | false | readonly Part[];

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
/** A path of this server: no scheme, no other host, and no script. */
const OWN_PATH = /^\/(?![/\\])/;

/**
 * Makes a piece of a page, with every value escaped. Throws where escaping would not be enough: in an attribute without quotes, and for a
 * link or the target of a form that is no path of this server.
 */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return Html.of(texts, parts);
}

function valueOf(before: string, part: Part): string {
  if (before.endsWith('=')) throw new Error('a value of an attribute needs quotes');
  if (/\b(href|action|formaction|src)="$/.test(before) && !(typeof part === 'string' && OWN_PATH.test(part)))
    throw new Error('a link needs to be a path of this server');
  return escaped(part);
}

function escaped(part: Part): string {
  if (part === null || part === undefined || part === false) return '';
  if (part instanceof Html) return part.text;
  if (typeof part === 'string' || typeof part === 'number')
    return String(part).replace(/[&<>"']/g, (char) => ESCAPES[char] ?? '');
  return part.map(escaped).join('');
}
