import { Writable } from 'node:stream';
import { expect, it } from 'vitest';
import { createLogger } from '../../shared/logger.js';

const ESCAPE = '\u001b[2J';

function lines(format: 'text' | 'json') {
  let written = '';
  const write = (text: Buffer, _: string, done: () => void) => {
    written += String(text);
    done();
  };
  return { logger: createLogger('agent', 'info', format, new Writable({ write })), read: () => written };
}

it('text is for people: a line each, with time, level and what it is about', () => {
  const { logger, read } = lines('text');
  logger.warn({ instanceId: 'i' }, 'a workload has ended');
  logger.debug('not told');
  expect(read()).toMatch(/^\[\d{4}-[^\]]+Z\] WARN \(agent\): a workload has ended \{"instanceId":"i"\}\n$/);
});

it('json is for programs', () => {
  const { logger, read } = lines('json');
  logger.warn({ instanceId: 'i' }, `said ${ESCAPE}`);
  expect(JSON.parse(read())).toMatchObject({ level: 40, name: 'agent', instanceId: 'i', msg: `said ${ESCAPE}` });
});

it('what a stranger says steers no terminal, wherever it stands in a line', () => {
  const { logger, read } = lines('text');
  logger.warn({ said: ESCAPE, err: new Error(`C1 \u009b and ${ESCAPE}`) }, `said ${ESCAPE}\u0000`);
  expect(read()).toContain('said \\u001b[2J\\u0000');
  // oxlint-disable-next-line no-control-regex -- what is looked for
  expect(read()).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
});
