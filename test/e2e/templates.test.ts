import { execFile, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { DEBIAN_IMAGE, docker, makeImage } from '../harness/docker.js';
import { eventually } from '../../scripts/eventually.js';
import { RealPlatform, RealRenter } from '../harness/real.js';

const run = promisify(execFile);
const LONG_MS = 180_000;
const PREFIX = 'gpurent-stand-in';
const ADD = fileURLToPath(new URL('../../dist/scripts/add-templates.js', import.meta.url));
/** What the images of the templates run, less the models and the gigabytes. */
const COMMANDS = {
  debian: ['sleep', 'infinity'],
  'pytorch-jupyter': ['python3', '/srv/app.py', '8888'],
  vllm: ['python3', '/srv/app.py', '8000'],
};

/** In the place of the image of GitHub's runner. */
const RUNNER_IMAGE = `${PREFIX}/runner`;
const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The only block of a guide in a language. */
function blockOf(guide: string, language: string): string {
  const blocks = [...readFileSync(`${ROOT}docs/${guide}`, 'utf8').matchAll(/^```(\w+)\n([^]*?)^```/gm)];
  const [only, ...others] = blocks.filter(([, each]) => each === language);
  expect(others).toEqual([]);
  return only?.[2] ?? '';
}

interface TemplateBody {
  id: string;
  name: string;
  image: string;
  recommended: boolean;
}

let real: RealPlatform;
let renter: RealRenter;
let templates: TemplateBody[];

const add = async () => {
  const env = { ...process.env, GPURENT_OPERATOR_TOKEN: real.operator.token };
  return (await run(process.execPath, [ADD, '--api', real.api.baseUrl, '--images', PREFIX], { env })).stdout;
};

beforeAll(async () => {
  await makeImage(RUNNER_IMAGE, ['WORKDIR /home/runner'], 'SIGTERM', DEBIAN_IMAGE);
  for (const [name, command] of Object.entries(COMMANDS)) {
    await makeImage(`${PREFIX}/${name}`, [`CMD ${JSON.stringify(command)}`], 'SIGTERM', DEBIAN_IMAGE);
  }
  real = await RealPlatform.start();
  await add();
  renter = await RealRenter.on(real);
  const { items } = await renter.api.get<{ items: TemplateBody[] }>('/v1/templates?tab=recommended');
  templates = items;
});
afterAll(async () => {
  await real.stop();
  await docker.getImage(`${RUNNER_IMAGE}:1`).remove();
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
  it('are there once, however often they are added', async () => {
    expect(templates.map(({ name }) => name).sort()).toEqual(['Debian 12', 'PyTorch with JupyterLab', 'vLLM']);
    expect(await add()).toMatch(/vLLM: is there already/);
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

  describe('your own start script', () => {
    const templateId = async () => {
      const { items } = await renter.api.get<{ items: TemplateBody[] }>('/v1/templates?tab=system');
      return items.find(({ name }) => name === 'Your own start script')?.id;
    };

    it('runs at each start, in as many variables as it needs', async () => {
      const script = [
        '#!/bin/bash',
        `# ${randomBytes(20_000).toString('hex')}`,
        'echo "$COLOUR${START_SCRIPT_GZ_1-}${START_SCRIPT-}" >>/root/runs',
        'sleep infinity & disown',
      ].join('\n');
      const encode = `${blockOf('orchestrators.md', 'python')}\nimport json, sys\nprint(json.dumps(env_overrides(sys.stdin.read())))`;
      const parts = JSON.parse(
        execFileSync('python3', ['-c', encode], { input: script, encoding: 'utf8' }),
      ) as object[];
      expect(parts.length).toBeGreaterThan(5);
      const env_overrides = [{ key: 'COLOUR', value: 'blue' }, ...parts];
      const { id } = await renter.deploy({ template_id: await templateId(), env_overrides });
      const runs = async () => {
        const up = await statusIs(renter.api, id, 'running', LONG_MS);
        return eventually('the script', async () => (await renter.ssh(up, 'cat /root/runs || true')) || undefined);
      };
      expect(await runs()).toBe('blue');
      await renter.api.post(`/v1/instances/${id}/stop`);
      await statusIs(renter.api, id, 'stopped', LONG_MS);
      await renter.start(id);
      const up = await statusIs(renter.api, id, 'running', LONG_MS);
      await eventually('the second run', async () => (await renter.ssh(up, 'cat /root/runs')) === 'blue\nblue');

      await renter.scp(up, `${ROOT}templates/start-script/onstart`, '/root/onstart');
      expect(await renter.ssh(up, "env -i PATH=$PATH START_SCRIPT='echo plain; echo $0' sh /root/onstart")).toMatch(
        /^plain\n/,
      );
      expect(await renter.ssh(up, 'env -i PATH=$PATH sh /root/onstart; echo $?')).toBe('0');
      const missing = await renter.ssh(
        up,
        'env -i PATH=$PATH START_SCRIPT_GZ_1=H4sIAAAAAAAAA0tNzsgHAFHm sh /root/onstart 2>&1; echo $?',
      );
      expect(missing).toMatch(/is a part missing\?\n1$/);
      await renter.destroy(id);
    });
  });

  it('GitHub’s runner: a batch job with a configuration of three parts, which ends with its job', async () => {
    const jit = randomBytes(4_500).toString('hex');
    real.log.keepSecret(jit.slice(0, 100));
    const asked: { path: string | undefined; body: string }[] = [];
    const github = createServer((request, response) => {
      void text(request).then((body) => {
        asked.push({ path: request.url, body });
        response.writeHead(201).end(JSON.stringify({ runner: { id: 1 }, encoded_jit_config: jit }, null, 2));
      });
    });
    await new Promise<void>((resolve) => github.listen(0, '127.0.0.1', resolve));
    const { id: template } = await renter.api.post<{ id: string }>('/v1/templates', {
      ...(JSON.parse(blockOf('github-runners.md', 'json')) as object),
      image: `${RUNNER_IMAGE}:1`,
      onstart: 'printf \'#!/bin/sh\\necho "got ${#2} characters by $1"\\n\' >run.sh; chmod 755 run.sh',
    });
    const { secret } = await renter.api.post<{ secret: string }>('/v1/api-keys', { name: 'runners' });
    const env = {
      PATH: process.env['PATH'],
      GITHUB_API: `http://127.0.0.1:${(github.address() as AddressInfo).port}`,
      GITHUB_TOKEN: 'token',
      REPOSITORY: 'me/it',
      API: real.api.baseUrl,
      KEY: secret,
      OFFER: renter.offerId,
      TEMPLATE: template,
      DISK_GB: '10',
    };
    const { stdout } = await run('bash', ['-c', blockOf('github-runners.md', 'bash')], {
      env,
    }).catch((error: unknown) => {
      throw new Error((error as { stdout: string }).stdout, { cause: error });
    });
    github.close();
    expect(asked).toMatchObject([{ path: '/repos/me/it/actions/runners/generate-jitconfig' }]);
    expect(JSON.parse(asked[0]?.body ?? '')).toMatchObject({ labels: ['self-hosted', 'gpurent'] });
    const { id } = JSON.parse(stdout) as InstanceBody;
    const ended = await statusIs(renter.api, id, 'error', LONG_MS);
    expect(ended.error_code).toBe('workload_completed');
    await eventually('its line', async () => {
      const { lines } = await renter.api.get<{ lines: string[] }>(`/v1/instances/${id}/logs`);
      return lines.includes('got 9000 characters by --jitconfig');
    });
    await renter.destroy(id);
  });
});
