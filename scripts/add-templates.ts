import { Command } from 'commander';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ApiError, connect, UnreachableError, type TemplateOfOperator } from '../client/api/index.js';

const FOLDER = fileURLToPath(new URL('../../templates/', import.meta.url));

interface Options {
  api: string;
  images: string;
}

/** Creates the system templates of `templates/` on a control plane, except those whose names exist there. */
async function addTemplates({ api, images }: Options, token: string): Promise<void> {
  const client = connect({ url: api, token });
  const { items } = await client.get('/v1/templates', { params: { query: { tab: 'system' } } });
  for (const name of readdirSync(FOLDER)) {
    const template = templateIn(`${FOLDER}/${name}`, images);
    const isThere = items.some(({ name }) => name === template.name);
    if (!isThere) await client.post('/v1/operator/templates', { body: template });
    process.stdout.write(`${template.name}: ${isThere ? 'is there already' : template.image}\n`);
  }
}

/** Reads `template.json` of a folder, with the script `onstart` beside it if there is one. */
function templateIn(folder: string, images: string): TemplateOfOperator {
  const text = readFileSync(`${folder}/template.json`, 'utf8').replaceAll('{images}', images);
  const template = JSON.parse(text) as TemplateOfOperator;
  const onstart = `${folder}/onstart`;
  return existsSync(onstart) ? { ...template, onstart: readFileSync(onstart, 'utf8') } : template;
}

const program = new Command('add-templates')
  .description(
    'Creates the system templates on a control plane. Set GPURENT_OPERATOR_TOKEN to an operator’s session token.',
  )
  .option('--api <url>', 'the address of the API', 'http://127.0.0.1:8080')
  .requiredOption('--images <prefix>', 'the prefix that scripts/build-images was given')
  .action(async (options: Options) => {
    const token = process.env['GPURENT_OPERATOR_TOKEN'] ?? '';
    await addTemplates(options, token).catch((error: unknown) => {
      if (!(error instanceof ApiError || error instanceof UnreachableError)) throw error;
      process.stderr.write(`add-templates: ${error.message}\n`);
      process.exitCode = 1;
    });
  });
await program.parseAsync();
