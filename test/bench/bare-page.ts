import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { build } from 'vite';

/** Beside node_modules, where React is. */
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const ENTRY = 'bare-page.js';

/** What a page shows: its elements as `[name, attributes, ...content]`, and the addresses of its styles. */
interface Shown {
  trees: unknown[];
  styles: string[];
}

const READ = `(() => {
  const names = { class: 'className', for: 'htmlFor' };
  const attributesOf = (element) =>
    Object.fromEntries([...element.attributes].map(({ name, value }) => [names[name] ?? name, value]));
  const treeOf = (node) =>
    node.nodeType === Node.TEXT_NODE ? node.data : [node.localName, attributesOf(node), ...[...node.childNodes].map(treeOf)];
  const styles = [...document.styleSheets].map(({ href }) => href);
  return { trees: [...document.getElementById('root').childNodes].map(treeOf), styles };
})()`;

const programOf = (trees: unknown[]) => `
import { createElement, Fragment } from 'react';
import { createRoot } from 'react-dom/client';
const elementOf = (tree) =>
  typeof tree === 'string' ? tree : createElement(tree[0], tree[1], ...tree.slice(2).map(elementOf));
const trees = ${JSON.stringify(trees)};
createRoot(document.getElementById('root')).render(createElement(Fragment, null, ...trees.map(elementOf)));
`;

interface File {
  type: 'text/html' | 'text/css' | 'text/javascript';
  body: string;
}

/** A page of React alone that renders from constants what another page shows, with the same styles. */
export class BarePage {
  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async like(page: Page): Promise<BarePage> {
    const { trees, styles } = await page.evaluate<Shown>(READ);
    const files = new Map<string, File>();
    for (const url of styles)
      files.set(new URL(url).pathname, { type: 'text/css', body: await (await fetch(url)).text() });
    const links = [...files.keys()].map((path) => `<link rel="stylesheet" href="${path}">`);
    files.set('/main.js', { type: 'text/javascript', body: await bundle(programOf(trees)) });
    files.set('/', { type: 'text/html', body: htmlOf(links) });
    const server = createServer(({ url = '' }, response) => {
      const file = files.get(url);
      if (!file) return void response.writeHead(404).end();
      const caching = file.type === 'text/html' ? 'no-cache' : 'public, max-age=31536000, immutable';
      response.writeHead(200, { 'Content-Type': `${file.type}; charset=utf-8`, 'Cache-Control': caching });
      response.end(file.body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new BarePage(server, `http://localhost:${(server.address() as AddressInfo).port}/`);
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}

/** Returns a program with the libraries that it imports, made as that of the console is made. */
async function bundle(program: string): Promise<string> {
  const built = await build({
    root: ROOT,
    configFile: false,
    logLevel: 'warn',
    publicDir: false,
    plugins: [
      {
        name: 'bare-page',
        resolveId: (id) => (id === ENTRY ? ENTRY : undefined),
        load: (id) => (id === ENTRY ? program : undefined),
      },
    ],
    build: {
      write: false,
      modulePreload: false,
      rolldownOptions: { input: ENTRY },
    },
  });
  if (!('output' in built)) throw new Error('Vite has not built a program');
  return built.output[0].code;
}

function htmlOf(links: readonly string[]): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>bare</title><link rel="icon" href="data:,">
${links.join('\n')}
<script type="module" src="/main.js"></script></head><body><div id="root"></div></body></html>`;
}
