export interface TemplatePort {
  port: number;
  protocol: 'tcp' | 'udp' | 'http';
  label: string;
  /** Whether the instance's `open_url` opens this port. */
  open_button: boolean;
  /** Who checks the access token: the host's access proxy (`proxy`), the workload itself (`bearer`), or nobody (`none`). */
  guard: 'proxy' | 'bearer' | 'none';
}

/** The port on which JupyterLab of a `jupyter` template listens. JupyterLab takes its token from `JUPYTER_TOKEN`. */
export const JUPYTER_PORT = 8888;
/** The agent's own SSH server listens on this port inside every container. */
const RESERVED_PORT = 22_022;

/** Returns the first fault of a template's ports, in words that follow "ports"; undefined if they are valid. */
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

/** Returns the ports of a template's instances. JupyterLab's own port comes first, and is always behind the access proxy. */
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
