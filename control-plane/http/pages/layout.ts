import { createHash } from 'node:crypto';
import { html, Html, type Part } from './html.js';

export interface Page {
  title: string;
  content: Part;
}

/** Where the script of the pages is. */
export const SCRIPT = '/passkeys.js';

/** The only style of all pages. */
const STYLE = [
  ':root{color-scheme:light dark;--text:#1b1b1f;--page:#fff;--line:#767680;--link:#0b57d0;--on-link:#fff;--bad:#b3261e}',
  '@media (prefers-color-scheme:dark){:root{--text:#e6e6ea;--page:#16161a;--line:#9a9aa6;--link:#a8c7fa;--on-link:#062e6f;--bad:#ffb4ab}}',
  '*{box-sizing:border-box}',
  'body{margin:0;background:var(--page);color:var(--text);font:1rem/1.5 system-ui,sans-serif}',
  'main{max-width:34rem;margin:0 auto;padding:2rem 1rem;overflow-wrap:anywhere}',
  'h1{font-size:1.6rem;line-height:1.25;margin:0 0 1rem}h2{font-size:1.2rem;margin:2rem 0 .5rem}',
  'a{color:var(--link)}',
  'label{display:block;font-weight:600}',
  'input{width:100%;min-height:2.75rem;padding:.5rem;font:inherit;color:inherit;background:var(--page);border:1px solid var(--line);border-radius:.25rem}',
  'input[type=checkbox]{width:1.5rem;min-height:1.5rem;margin:0 .5rem 0 0;vertical-align:middle}',
  '.check label{display:inline}',
  'button{min-height:2.75rem;padding:.5rem 1rem;font:inherit;font-weight:600;color:var(--on-link);background:var(--link);border:1px solid var(--link);border-radius:.25rem;cursor:pointer}',
  'button.quiet{color:var(--link);background:var(--page)}',
  ':focus-visible{outline:3px solid var(--link);outline-offset:2px}',
  '.field{margin:0 0 1rem}.hint{margin:0;color:var(--text)}.wrong{margin:0;color:var(--bad);font-weight:600}',
  '.problem,.notice{margin:0 0 1rem;padding:.75rem;border:2px solid var(--bad);border-radius:.25rem}.notice{border-color:var(--link)}',
  'ul.sessions{list-style:none;padding:0}ul.sessions li{padding:.75rem 0;border-top:1px solid var(--line)}',
  'ul.sessions form{margin:.5rem 0 0}',
  'fieldset{margin:0;padding:0;border:0}form+form{margin-top:2rem}.qr{display:block;width:14rem;max-width:100%}ul.codes{columns:2}',
].join('');

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');
/** Its text must stay as it is, or its hash is another. */
const STYLE_ELEMENT = Html.of([`<style>${STYLE}</style>`], []);

const policyOf = (scripts: string) =>
  `default-src 'none'; ${scripts}style-src 'sha256-${STYLE_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`;

/** What a page may do: nothing but show its own style and send forms to this server. It has no script, and none is run. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': policyOf(''),
  'X-Frame-Options': 'DENY',
  'X-Content-Type-Options': 'nosniff',
  // Other sites learn no address, which may have a token. With no-referrer, browsers would send forms with Origin: null.
  'Referrer-Policy': 'same-origin',
  'Cache-Control': 'no-store',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** What a page with script may do: it also runs the script of this origin, which can send nothing to anybody by itself. */
export const SCRIPT_PAGE_HEADERS: Readonly<Record<string, string>> = {
  ...PAGE_HEADERS,
  'Content-Security-Policy': policyOf("script-src 'self'; "),
};

/** Returns the text of a page, with or without the script. */
export function documentOf({ title, content }: Page, usesScript = false): string {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="robots" content="noindex" />
        <title>${title} - gpurent</title>
        ${STYLE_ELEMENT}${usesScript && html`<script src="${SCRIPT}" defer></script>`}
      </head>
      <body>
        <main>
          <h1>${title}</h1>
          ${content}
        </main>
      </body>
    </html> `.text;
}
