import { createClient } from '@hey-api/openapi-ts';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { compile } from '../harness/compile.js';
import { fetchDocument } from '../harness/openapi-conformance.js';
import { TestControlPlane } from '../harness/control-plane.js';

/** Programs that use generated clients by what the API promises of its fields. */
const PROGRAMS = 'test/fixtures/clients';

let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-clients-'));
  cpSync(PROGRAMS, folder, { recursive: true });
  const test = await TestControlPlane.start();
  const document = await fetchDocument(test.url);
  await test.stop();
  await createClient({
    input: { ...document },
    output: join(folder, 'hey-api'),
    logs: { level: 'silent', file: false },
  });
  mkdirSync(join(folder, 'openapi-typescript'));
  const types = await openapiTS(document as unknown as OpenAPI3);
  writeFileSync(join(folder, 'openapi-typescript/schema.ts'), astToString(types));
});
afterAll(() => rmSync(folder, { recursive: true }));

it('clients that are generated of the document compile strictly, with the fields that the API promises', () => {
  const programs = ['with-openapi-typescript.ts', 'with-hey-api.ts'].map((name) => join(folder, name));
  expect(compile(programs)).toEqual([]);
});
