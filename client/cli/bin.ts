#!/usr/bin/env node
import { main } from './main.js';
import { processTerminal } from './terminal/terminal.js';

// `gpurent logs ... | head` closes the pipe early.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
process.exitCode = await main(process.argv.slice(2), processTerminal());
