import { factsOf } from '../instances/facts.js';
import { findInstance } from '../instances/find.js';
import type { Define } from '../invocation/define.js';
import { INSTANCE } from './options.js';

export const define: Define = (command, invocation) => {
  command.argument(...INSTANCE).action(async (name: string) => {
    const instance = await findInstance(invocation.gpurent(), name);
    invocation.facts(instance, factsOf(instance, invocation.terminal.now()));
  });
};
