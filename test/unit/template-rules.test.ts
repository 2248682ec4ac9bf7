import { describe, expect, it } from 'vitest';
import { invalidField } from '../../control-plane/domain/refusal.js';
import { lookOf } from '../../control-plane/domain/catalogue/template-name.js';
import { validatePorts, instancePorts, type TemplatePort } from '../../control-plane/domain/catalogue/template-port.js';

const port = (number: number, changes: Partial<TemplatePort> = {}): TemplatePort => ({
  port: number,
  protocol: 'http',
  label: `port ${number}`,
  open_button: false,
  guard: 'proxy',
  ...changes,
});

describe('Ports of a template', () => {
  it.each<[string, TemplatePort[]]>([
    ['none', []],
    ['one of each kind', [port(80), port(81, { protocol: 'tcp', guard: 'none' }), port(82, { guard: 'bearer' })]],
    ['the same number by tcp and udp', [port(80), port(80, { protocol: 'udp', guard: 'none' })]],
    ['one open button', [port(80, { open_button: true }), port(81)]],
  ])('are taken: %s', (_, ports) => {
    expect(validatePorts(ports)).toBeUndefined();
  });

  it.each<[string, TemplatePort[]]>([
    ['names 80/tcp twice', [port(80), port(81), port(80, { protocol: 'tcp', guard: 'none' })]],
    ['names 53/udp twice', [53, 53].map((number) => port(number, { protocol: 'udp', guard: 'none' }))],
    [
      'port 90: the access proxy speaks http; for tcp give the guard "bearer" or "none"',
      [port(80), port(90, { protocol: 'tcp' })],
    ],
    [
      'port 53: the access proxy speaks http; for udp give the guard "bearer" or "none"',
      [port(53, { protocol: 'udp' })],
    ],
    ['has more than one open button', [80, 81].map((number) => port(number, { open_button: true }))],
    [
      'has an open button on a port that is not http',
      [port(80, { open_button: true, protocol: 'tcp', guard: 'none' })],
    ],
    ['names 22022, which is taken by SSH', [port(80), port(22_022)]],
  ])('are not: it %s', (fault, ports) => {
    expect(validatePorts(ports)).toBe(fault);
  });
});

describe('Ports of an instance', () => {
  const JUPYTER = { port: 8888, protocol: 'http', label: 'JupyterLab', guard: 'proxy', jupyter: true };

  it('are those of its template', () => {
    expect(instancePorts(['ssh'], [port(80), port(8888)])).toEqual([
      { ...port(80), jupyter: false },
      { ...port(8888), jupyter: false },
    ]);
  });

  it('begin with JupyterLab where there is one, behind the proxy whatever the template says of its port', () => {
    const udp = port(8888, { protocol: 'udp', guard: 'none' });
    const own = [port(80), port(8888, { guard: 'none', label: 'mine' }), udp];
    expect(instancePorts(['ssh', 'jupyter'], own)).toEqual([
      { ...JUPYTER, open_button: false },
      { ...port(80), jupyter: false },
      { ...udp, jupyter: false },
    ]);
  });

  it('have their button where the template has put it', () => {
    const opened = (...ports: TemplatePort[]) =>
      instancePorts(['jupyter'], ports).flatMap((one) => (one.open_button ? one.port : []));
    expect(opened(port(80, { open_button: true }))).toEqual([80]);
    expect(opened(port(8888, { open_button: true }))).toEqual([8888]);
    expect(opened(port(80), port(8888))).toEqual([]);
  });
});

describe('A name', () => {
  it.each([
    ['PyTorch', 'pytorch'],
    ['Py Torch', 'py-torch!'],
    ['Pytorch', 'руtоrсһ'],
    ['Image 10', 'lmage lo'],
    ['Ollama', 'οllαmα'],
    ['File', 'ﬁle'],
    ['Café', 'cafe'],
    ['Kind', 'κιnԁ'],
    ['PyTorch', 'Py\u3164Torch'],
    ['PyTorch', '\u115fPy\u1160Tor\uffa0ch'],
    ['PyTorch', 'Py\u200bTo\u00ad\u2060rch\ufeff'],
    ['PyTorch', 'PyTorch\u034f\ufe0f\u{e0041}'],
    ['PyTorch', 'PyTorchʼ'],
    ['Jupyter', 'Jսpyteʀ'],
    ['SGLang', 'ՏGԼaոց'],
    ['Ubuntu', 'Սbuntu'],
    ['vLLM', 'ꓦꓡꓡꓟ'],
    ['vLLM', 'ᏙᏞᏞᎷ'],
    ['vLLM', 'ꮩꮮꮮꮇ'],
    ['Whisper', 'ᎳhᎥsper'],
    ['Hugging', 'Ηugging'],
    ['PyTorch', '🅿yTorch'],
    ['ComfyUI', 'ⲤomfyUI'],
    ['Axolotl', 'Ax०lotl'],
  ])('%s looks like %s', (one, other) => {
    expect(lookOf(one)).toBe(lookOf(other));
  });

  it.each([
    ['PyTorch', 'PyTorch 2'],
    ['TensorFlow', 'PyTorch'],
    ['vLLM', 'vLM'],
    ['日本', '日木'],
    ['Ubuntu', 'Տbuntu'],
    ['한국', '한'],
  ])('%s does not look like %s', (one, other) => {
    expect(lookOf(one)).not.toBe(lookOf(other));
  });

  it('is compared in plain small letters and digits', () => {
    expect(lookOf('Stable-Diffusion 2.3 (ü)')).toBe('stabledlffuslon23u');
  });

  it('has every lookalike for the letter that it looks like', () => {
    expect(lookOf('аеорсхуіѕјԁһԛԝкмтвн')).toBe('aeopcxylsjdhqwkmtbh');
    expect(lookOf('αβεηικνορτυχ')).toBe('abenlkvoptux');
    expect(lookOf('01ıⅼ')).toBe('olll');
    expect(lookOf('քցհյլոռօգզս')).toBe('fghjlnnoqqu');
    expect(lookOf('ՔՑՀՅԼՈՌՕԳԶՍՏ')).toBe('fghjlnnoqqus');
    expect(lookOf('ᎠᎡᎢᎥᎩᎪᎫᎬᎳᎷᎻᎽᏀᏂᏃᏎᏏᏒᏔᏕᏙᏚᏞᏟᏢᏦᏧᏮᏳᏴ')).toBe('drtlyajewmhyghz4brwsvslcpkd6gb');
    expect(lookOf('ꓮꓐꓚꓓꓰꓝꓖꓧꓲꓙꓗꓡꓟꓠꓳꓑꓣꓢꓔꓴꓦꓪꓫꓬꓜ')).toBe('abcdefghljklmnoprstuvwxyz');
  });
});

it('the refusal of a field names it as a schema would', () => {
  expect(invalidField('/disk_gb', 'must be a whole number')).toMatchObject({
    code: 'VALIDATION_FAILED',
    message: '/disk_gb: must be a whole number',
    extra: { details: [{ path: '/disk_gb', message: 'must be a whole number' }] },
  });
});
