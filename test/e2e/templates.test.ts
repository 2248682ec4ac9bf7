import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { DEBIAN_IMAGE, docker, makeImage } from '../harness/docker.js';
import { eventually } from '../../scripts/eventually.js';
import { RealPlatform, RealRenter } from '../harness/real.js';

const LONG_MS = 60_000;
const PREFIX = 'gpurent-stand-in';
const ADD = fileURLToPath(new URL('../../dist/scripts/add-templates.js', import.meta.url));
/** What the images of the templates run, less the models and the gigabytes. */
const COMMANDS = {
  debian: ['sleep', 'infinity'],
  'pytorch-jupyter': ['python3', '/srv/app.py', '8888'],
  vllm: ['python3', '/srv/app.py', '8000'],
};

interface TemplateBody {
  id: string;
  name: string;
  image: string;
  recommended: boolean;
}

let real: RealPlatform;
let renter: RealRenter;
let templates: TemplateBody[];

const add = () =>
  execFileSync(process.execPath, [ADD, '--api', real.api.baseUrl, '--images', PREFIX], {
    env: { ...process.env, GPURENT_OPERATOR_TOKEN: real.operator.token },
    encoding: 'utf8',
  });

beforeAll(async () => {
  for (const [name, command] of Object.entries(COMMANDS)) {
    await makeImage(`${PREFIX}/${name}`, [`CMD ${JSON.stringify(command)}`], 'SIGTERM', DEBIAN_IMAGE);
  }
  real = await RealPlatform.start({ ports: '23270-23289' });
  add();
  renter = await RealRenter.on(real);
  const { items } = await renter.api.get<{ items: TemplateBody[] }>('/v1/templates?tab=recommended');
  templates = items;
});
afterAll(async () => {
  await real.stop();
  for (const name of Object.keys(COMMANDS)) await docker.getImage(`${PREFIX}/${name}:1`).remove();
});

async function deploy(name: string): Promise<InstanceBody> {
  const template = templates.find(({ image }) => image === `${PREFIX}/${name}:1`);
  const { id } = await renter.deploy({ template_id: template?.id });
  return statusIs(renter.api, id, 'running', LONG_MS);
}

/** The instance, once a link of it has appeared. */
const linked = (id: string, link: 'jupyter_url' | 'open_url') =>
  eventually(
    link,
    async () => {
      const url = (await renter.api.get<InstanceBody>(`/v1/instances/${id}`))[link];
      return typeof url === 'string' && url;
    },
    LONG_MS,
  );

describe('the system templates', () => {
  it('are there once, however often they are added', () => {
    expect(templates.map(({ name }) => name).sort()).toEqual(['Debian 12', 'PyTorch with JupyterLab', 'vLLM']);
    expect(add()).toMatch(/vLLM: is there already/);
  });

  it('Debian: a machine to log into', async () => {
    const up = await deploy('debian');
    expect(await renter.ssh(up, '. /etc/os-release; echo $VERSION_ID')).toBe('12');
    expect(up['access_token']).toBeNull();
    await renter.destroy(up.id);
  });

  it('PyTorch: JupyterLab by its link, and SSH', async () => {
    const up = await deploy('pytorch-jupyter');
    const url = await linked(up.id, 'jupyter_url');
    expect((await fetch(url)).status).toBe(200);
    expect((await fetch(url.replace(/token=.*/, 'token=wrong'))).status).toBe(401);
    expect(await renter.ssh(up, 'echo $JUPYTER_TOKEN')).toBe(up['access_token']);
    await renter.destroy(up.id);
  });

  it('vLLM: an open button for browsers, and a key for scripts', async () => {
    const up = await deploy('vllm');
    const url = await linked(up.id, 'open_url');
    expect((await fetch(url)).status).toBe(200);
    const api = new URL('/v1/models', url).href;
    expect((await fetch(api)).status).toBe(401);
    expect((await fetch(api, { headers: { Authorization: `Bearer ${String(up['access_token'])}` } })).status).toBe(200);
    expect(await renter.ssh(up, 'echo $MODEL')).toContain('Qwen');
    await renter.destroy(up.id);
  });
});
