import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { RECORDER, Recorder, type Recorded } from './recorder.js';
import { noteTouched } from './touched.js';

/** What a test file has run and read. */
export interface TestRecord extends Recorded {
  test: string;
  touched: string[];
}

// Before every test file.
const folder = process.env['TEST_RECORDS'];
if (folder === undefined) throw new Error('TEST_RECORDS names no folder for what the tests run');
const root = process.cwd();
const recorder = new Recorder();
const touched = noteTouched(root);
Object.assign(globalThis, { [RECORDER]: recorder });

// The first of these hooks runs last.
afterAll(() => {
  const test = (expect.getState().testPath ?? '').slice(root.length + 1);
  const record: TestRecord = { test, ...recorder.recorded(), touched: [...touched] };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${test.replaceAll('/', '+')}.json`), JSON.stringify(record));
});
