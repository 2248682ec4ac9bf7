import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { compile, STRICT } from '../harness/compile.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { makePublicKey } from '../harness/keys.js';
import { checkAnswers, type ApiDocument } from '../harness/openapi-conformance.js';
import { RELEASES, leftBy } from '../harness/releases.js';

/** What test/fixtures/clients/journey.ts exports, once it is compiled. */
interface Program {
  journey: (surroundings: {
    url: string;
    fetch: (request: Request) => Promise<Response>;
    operatorToken: string;
    publicKey: string;
  }) => Promise<string[]>;
}

let folder: string;
let test: TestControlPlane;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-earlier-'));
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  cpSync('test/fixtures/clients/journey.ts', join(folder, 'journey.ts'));
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
});
afterAll(() => rmSync(folder, { recursive: true }));

/** API rule 2. The program is compiled with the types of the release, and each answer to it is held against the document of the release. */
it.each(RELEASES)('a program for release %s goes on working', async (release) => {
  const document = JSON.parse(readFileSync(leftBy(release, 'openapi.json'), 'utf8')) as ApiDocument;
  writeFileSync(join(folder, 'schema.ts'), astToString(await openapiTS(document as unknown as OpenAPI3)));
  const compiled = join(folder, release);
  const options = { ...STRICT, noEmit: false, rootDir: folder, outDir: compiled };
  expect(compile([join(folder, 'journey.ts')], options)).toEqual([]);
  const { journey } = (await import(pathToFileURL(join(compiled, 'journey.js')).href)) as Program;

  test = await TestControlPlane.start();
  try {
    const agent = await test.host();
    await test.offer(agent);
    await test.template();
    const inspect = checkAnswers(document);
    let answers = 0;
    const fetch = async (request: Request) => {
      const response = await globalThis.fetch(request);
      const { status, headers } = response;
      const text = await response.clone().text();
      const body: unknown = text === '' ? null : JSON.parse(text);
      await inspect(request.method, new URL(request.url).pathname, { status, headers, body }, undefined);
      answers += 1;
      return response;
    };
    const operatorToken = test.operator.token ?? '';
    const did = await journey({ url: test.url, fetch, operatorToken, publicKey: makePublicKey('-t', 'ed25519') });
    expect(did).toEqual(['running', 'stopped', 'running', 'destroyed', 'INVALID_STATE']);
    expect(answers).toBeGreaterThan(25);
  } finally {
    await test.stop();
  }
});
