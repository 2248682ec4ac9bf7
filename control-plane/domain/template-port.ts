export interface TemplatePort {
  port: number;
  protocol: 'tcp' | 'udp' | 'http';
  label: string;
  /** Whether the instance's `open_url` leads here. */
  open_button: boolean;
  /** Who asks for the access token: the host's access proxy, the workload itself, or nobody. */
  guard: 'proxy' | 'bearer' | 'none';
}

/** Where a `jupyter` template's JupyterLab listens; it takes its token from `JUPYTER_TOKEN`. */
export const JUPYTER_PORT = 8888;
/** Inside every container, our SSH is here. */
const RESERVED_PORT = 22_022;

/** What is wrong with a template's ports; undefined where nothing is. */
export function validatePorts(ports: readonly TemplatePort[]): string | undefined {
  const names = ports.map(({ port, protocol }) => `${port}/${protocol === 'udp' ? 'udp' : 'tcp'}`);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) return `names ${twice} twice`;
  const unguarded = ports.find(({ protocol, guard }) => protocol !== 'http' && guard === 'proxy');
  if (unguarded) {
    return `port ${unguarded.port}: the access proxy speaks http; for ${unguarded.protocol} give the guard "bearer" or "none"`;
  }
  if (ports.filter(({ open_button }) => open_button).length > 1) return 'has more than one open button';
  if (ports.some(({ open_button, protocol }) => open_button && protocol !== 'http'))
    return 'has an open button on a port that is not http';
  return ports.some(({ port }) => port === RESERVED_PORT) ? `names ${RESERVED_PORT}, which is taken by SSH` : undefined;
}

/** The ports of a template's instances: JupyterLab's own comes first, always behind the access proxy. */
export function instancePorts(
  mode: readonly string[],
  ports: readonly TemplatePort[],
): (TemplatePort & { jupyter: boolean })[] {
  const own = ports.map((port) => ({ ...port, jupyter: false }));
  if (!mode.includes('jupyter')) return own;
  const jupyter = {
    port: JUPYTER_PORT,
    protocol: 'http' as const,
    label: 'JupyterLab',
    open_button: ports.some(({ port, open_button }) => port === JUPYTER_PORT && open_button),
    guard: 'proxy' as const,
    jupyter: true,
  };
  return [jupyter, ...own.filter(({ port, protocol }) => port !== JUPYTER_PORT || protocol === 'udp')];
}
