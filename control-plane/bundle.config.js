import { defineConfig } from 'rolldown';

/**
 * Puts the compiled control plane and its packages into one file: it starts in half the time of 1,600 files. Packages that read files of
 * their own, or are seldom needed, stay as they are.
 */
export default defineConfig({
  input: { 'control-plane': 'dist/control-plane/main.js' },
  platform: 'node',
  external: ['better-sqlite3', 'pino', 'pino-pretty', '@fastify/swagger-ui'],
  logLevel: 'warn',
  output: {
    // A wrong Node is refused before anything else is loaded.
    banner: ({ isEntry }) => (isEntry ? "import '../shared/require-node.js';" : ''),
    dir: 'dist/bundle',
    comments: false,
    chunkFileNames: 'control-plane-[name]-[hash].js',
  },
});
