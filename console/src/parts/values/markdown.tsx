import { compiler } from 'markdown-to-jsx/react';
import { createElement, Fragment, useMemo, type ReactNode } from 'react';
import { visible } from '../../../../client/text/visible.js';
import styles from '../markdown.module.css';

/** The elements that a text may make, and what they become: a heading stands below those of the page. */
const ELEMENTS: ReadonlyMap<string, string> = new Map([
  ...['p', 'strong', 'em', 'del', 'mark', 'sup', 'ul', 'ol', 'li', 'blockquote', 'hr', 'code', 'div'].map(
    (name) => [name, name] as const,
  ),
  ...['thead', 'tbody', 'tr', 'th', 'td'].map((name) => [name, name] as const),
  ...([1, 2, 3, 4, 5, 6] as const).map((level) => [`h${level}`, `h${Math.min(level + 2, 6)}`] as const),
]);

/**
 * Shows a text in Markdown that a stranger has written. HTML in it stays text; of its elements only those named here are made, with no
 * attribute; links lead to http and https, and a picture is a link to it.
 */
export function Markdown({ text }: { text: string }) {
  const content = useMemo(
    () => compiler(visible(text), { createElement: elementOf, disableParsingRawHTML: true }),
    [text],
  );
  return <div className={styles.markdown}>{content}</div>;
}

interface Attributes {
  key?: React.Key | null | undefined;
  href?: string;
  src?: string;
  alt?: string;
  start?: number;
  checked?: boolean;
}

function elementOf(tag: unknown, attributes: Attributes | null, ...children: ReactNode[]): ReactNode {
  const { key = null, href, src, alt, start, checked } = attributes ?? {};
  if (tag === 'a') return createElement(Outside, { key, href }, ...children);
  if (tag === 'img') return createElement(Outside, { key, href: src }, `[picture: ${alt || 'without a description'}]`);
  if (tag === 'input') return checked ? '☑' : '☐';
  if (tag === 'pre') return createElement('pre', { key, tabIndex: 0 }, ...children);
  if (tag === 'table') return createElement(WideTable, { key }, ...children);
  const name = typeof tag === 'string' ? ELEMENTS.get(tag) : undefined;
  const numbered = tag === 'ol' && Number.isSafeInteger(start) ? { start } : {};
  return createElement(name ?? Fragment, { key, ...numbered }, ...children);
}

/** A link to a page of somebody else, which learns nothing of this one. Other addresses are no links. */
function Outside({ href = '', children }: { href?: string | undefined; children?: ReactNode }) {
  if (!/^https?:\/\//i.test(href) || !URL.canParse(href)) return <span>{children}</span>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

function WideTable({ children }: { children?: ReactNode }) {
  return (
    <div className={styles.wide} role="region" aria-label="Table" tabIndex={0}>
      <table>{children}</table>
    </div>
  );
}
