import type { Command } from 'commander';
import type { Invocation } from './invocation.js';

/** Adds the options, arguments and subcommands of a command, and what it does. */
export type Define = (command: Command, invocation: Invocation) => void;
