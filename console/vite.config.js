import { readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { defineConfig } from 'vite';

const OUT = join(import.meta.dirname, '../dist/console');
/** The browsers of 2024 and later: they know light-dark() and nested rules. */
const BROWSERS = ['chrome123', 'firefox121', 'safari17.5'];
/** What almost every page uses; charts and Markdown bring libraries that few do. */
const SHARED =
  /\/console\/src\/(?:data|parts|text)\/(?:(?!template-editor|market)[a-z-]+\/)?(?!chart|plot|gaps|markdown|spend-caps|limit-fields|limit-facts|address-input|leave-question|templates|secret-dialog|one-request|request-keys|send-once|limits|fit)[^/]+$/;
/** In development the control plane of `npm run dev` answers what the console asks for. */
const CONTROL_PLANE = process.env['GPURENT_DEV_URL'] ?? 'http://127.0.0.1:8080';

/** Writes each text file also as gzip and Brotli, so that the control plane compresses nothing. */
function compressed() {
  return {
    name: 'compressed',
    apply: 'build',
    async closeBundle() {
      for (const entry of await readdir(OUT, { recursive: true, withFileTypes: true })) {
        if (!/\.(html|js|css|svg)$/.test(entry.name)) continue;
        const file = join(entry.parentPath, entry.name);
        const content = await readFile(file);
        const size = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
        await writeFile(`${file}.gz`, gzipSync(content, { level: 9 }));
        await writeFile(`${file}.br`, brotliCompressSync(content, { params: size }));
      }
    },
  };
}

export default defineConfig({
  root: import.meta.dirname,
  plugins: [compressed()],
  // Its way to read entities in a browser writes HTML, which Trusted Types forbid; the other one has a list of them.
  resolve: { alias: { 'markdown-to-jsx/entities': fileURLToPath(import.meta.resolve('markdown-to-jsx/entities')) } },
  build: {
    outDir: OUT,
    emptyOutDir: true,
    target: BROWSERS,
    // No file becomes a part of another: the policy of the page allows no inline style and no inline font.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    license: { fileName: 'licenses.md' },
    chunkSizeWarningLimit: 700,
    // Each file costs the browser time, also those that a page shares with few others.
    cssCodeSplit: false,
    rolldownOptions: {
      output: { codeSplitting: { groups: [{ name: 'shared', test: SHARED }] } },
      // 'use client' of the components of Base UI means nothing here.
      onLog: (level, log, handle) => log.code !== 'MODULE_LEVEL_DIRECTIVE' && handle(level, log),
    },
  },
  server: {
    host: 'localhost',
    port: 8081,
    strictPort: true,
    proxy: Object.fromEntries(
      ['/v1', '/docs', '/sign-in', '/sign-up', '/sign-out', '/account', '/device', '/passkeys.js'].map((path) => [
        path,
        { target: CONTROL_PLANE, changeOrigin: false },
      ]),
    ),
  },
});
