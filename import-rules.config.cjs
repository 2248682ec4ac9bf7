/**
 * Which part may know which, as ARCHITECTURE.md has it: dependencies point down, and each rule names what its part may see.
 */
const mayOnlySee = (part, others, except = []) => ({
  name: `${part} sees only its own`,
  severity: 'error',
  from: { path: `^${part}/`, ...(except.length > 0 && { pathNot: except.map((path) => `^${path}/`) }) },
  to: {
    path: '^(shared|client|console|control-plane|agent|test|scripts)/',
    pathNot: [part, ...others].map((path) => `^${path}(/|\\.)`),
  },
});

/**
 * The rooms of a folder, from the lowest to the highest: none sees those after it.
 *
 * @param {string} folder
 * @param {string[]} rooms
 */
const inOrder = (folder, rooms) =>
  rooms.slice(0, -1).map((room, index) => ({
    name: `${folder}/${room} sees no room above it`,
    severity: 'error',
    from: { path: `^${folder}/${room}/` },
    to: { path: rooms.slice(index + 1).map((higher) => `^${folder}/${higher}/`) },
  }));

/** The folders of control-plane/services, from the lowest floor to the highest: each sees those before it. */
const SERVICE_FLOORS = [
  'secrets',
  'connections',
  'system',
  'events',
  'audit-out',
  'mail',
  'organizations',
  'webhooks',
  'machines',
  'rollouts',
  'catalogue',
  'metering',
  'instances',
  'measurements',
  'billing',
  'reconciler',
  'housekeeping',
  'actions',
  'oversight',
];

module.exports = {
  forbidden: [
    { name: 'no cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'no two folders that import each other',
      severity: 'error',
      scope: 'folder',
      from: {},
      to: { circular: true },
    },
    {
      name: 'the domain is pure',
      severity: 'error',
      from: { path: '/domain/' },
      to: { dependencyTypes: ['core', 'npm', 'npm-dev'] },
    },
    mayOnlySee('shared', []),
    mayOnlySee('client', []),
    mayOnlySee('console', ['client']),
    mayOnlySee('console/src/data', ['client']),
    mayOnlySee('console/src/text', ['client']),
    mayOnlySee('console/src/parts', ['client', 'console/src/data', 'console/src/styles']),
    mayOnlySee('console/src/pages', ['client', 'console/src/data', 'console/src/parts', 'console/src/styles']),
    {
      name: 'pages of the console do not see each other',
      severity: 'error',
      from: { path: '^console/src/pages/([^/]+)/' },
      to: { path: '^console/src/pages/', pathNot: '^console/src/pages/$1/' },
    },
    mayOnlySee('client/api', []),
    mayOnlySee('client/text', []),
    mayOnlySee('client/mcp', ['client/api', 'client/text']),
    mayOnlySee('client/cli', ['client/api', 'client/mcp', 'client/text']),
    mayOnlySee('scripts', ['shared', 'client']),
    mayOnlySee('control-plane', ['shared'], ['control-plane/http/mcp']),
    mayOnlySee('agent', ['shared']),

    mayOnlySee('control-plane/domain', ['shared']),
    mayOnlySee('control-plane/store', ['shared', 'control-plane/domain']),
    ...SERVICE_FLOORS.map((floor, index) =>
      mayOnlySee(`control-plane/services/${floor}`, [
        'shared',
        'control-plane/domain',
        'control-plane/store',
        ...SERVICE_FLOORS.slice(0, index).map((lower) => `control-plane/services/${lower}`),
      ]),
    ),
    // Makes what each floor keeps in memory.
    mayOnlySee('control-plane/services/parts', ['shared', 'control-plane/domain', 'control-plane/services']),
    // Who somebody is: beside the floors. Only the HTTP interface, the parts, app.ts and jobs.ts know it.
    mayOnlySee('control-plane/services/identity', [
      'shared',
      'control-plane/domain',
      'control-plane/store',
      ...['secrets', 'connections', 'system', 'events', 'mail', 'organizations'].map(
        (floor) => `control-plane/services/${floor}`,
      ),
    ]),
    mayOnlySee('control-plane/payments', ['shared', 'control-plane/domain']),
    mayOnlySee('control-plane/outbound', ['shared', 'control-plane/domain']),
    mayOnlySee('control-plane/mail', ['shared', 'control-plane/domain']),
    mayOnlySee(
      'control-plane/http',
      [
        'shared',
        'control-plane/domain',
        'control-plane/services',
        'control-plane/config',
        'control-plane/host-release',
      ],
      ['control-plane/http/mcp'],
    ),
    // The server for AI agents calls the API as any client does.
    mayOnlySee('control-plane/http/mcp', [
      'shared',
      'client/api',
      'client/mcp',
      'control-plane/domain',
      'control-plane/services',
      'control-plane/http',
    ]),
    ...inOrder('control-plane/domain', ['instances', 'machines', 'catalogue', 'identity', 'money', 'mail']),
    ...inOrder('control-plane/services/identity', [
      'sessions',
      'users',
      'companies',
      'factors',
      'links',
      'operators',
      'sign-in',
      'devices',
    ]),
    ...inOrder('control-plane/services/billing', ['limits', 'reports', 'settle', 'caps', 'ledger', 'payments']),
    ...inOrder('control-plane/http', [
      'access',
      'schema',
      'errors',
      'limits',
      'answers',
      'events',
      'metrics',
      'openapi',
      'console',
      'routes',
      'mcp',
      'pages',
    ]),
    ...inOrder('control-plane/http/routes', ['billing', 'identity', 'instances', 'operator']),
    ...inOrder('agent/runtime/docker', ['files', 'images', 'networks', 'containers', 'data-roots', 'vm']),
    ...inOrder('console/src/data', ['api', 'values', 'forms', 'instances', 'live']),
    ...inOrder('console/src/parts', [
      'charts',
      'controls',
      'forms',
      'layout',
      'values',
      'instances',
      'market',
      'template-editor',
    ]),
    {
      name: 'hosts and workers do not sign in',
      severity: 'error',
      from: { path: '^control-plane/(grpc|workers)/' },
      to: { path: '^control-plane/services/identity/' },
    },
    // The release that hosts are given: http/ and grpc/ give it.
    mayOnlySee('control-plane/host-release', ['shared', 'control-plane/domain']),
    mayOnlySee('control-plane/grpc', [
      'shared',
      'control-plane/domain',
      'control-plane/services',
      'control-plane/host-release',
    ]),
    mayOnlySee('control-plane/workers', ['shared', 'control-plane/domain', 'control-plane/services']),

    mayOnlySee('agent/domain', ['shared']),
    mayOnlySee('agent/journal', ['shared', 'agent/domain']),
    mayOnlySee('agent/host', ['shared', 'agent/domain', 'agent/config']),
    mayOnlySee('agent/link', ['shared', 'agent/domain']),
    mayOnlySee('agent/pulls', ['shared', 'agent/domain', 'agent/proxy/json-lines']),
    mayOnlySee('agent/runtime', ['shared', 'agent/domain', 'agent/host', 'agent/pulls']),
    mayOnlySee('agent/logs', ['shared', 'agent/domain', 'agent/runtime/workload', 'agent/link/outbox']),
    mayOnlySee('agent/measurements', [
      'shared',
      'agent/domain',
      'agent/host/gpus/driver',
      'agent/link/outbox',
      'agent/runtime/workload',
    ]),
    mayOnlySee('agent/outages', ['shared', 'agent/domain', 'agent/journal', 'agent/runtime/workload']),
    mayOnlySee('agent/proxy', ['shared']),
    mayOnlySee('agent/status', ['shared', 'agent/domain', 'agent/host/gpus/driver']),
    mayOnlySee('agent/doctor', ['shared', 'agent/domain', 'agent/host', 'agent/runtime', 'agent/link', 'agent/config']),
    mayOnlySee('agent/upgrades', ['shared', 'agent/domain', 'agent/host/durable-file', 'agent/link']),
    mayOnlySee('agent/observation', ['shared', 'agent/domain', 'agent/runtime/workload']),
    mayOnlySee('agent/guarded-ports', [
      'shared',
      'agent/domain',
      'agent/observation',
      'agent/proxy',
      'agent/runtime/workload',
    ]),
    mayOnlySee('agent/canary', ['shared', 'agent/runtime/workload']),
    mayOnlySee('agent/gpu-test', ['shared', 'agent/domain', 'agent/host', 'agent/runtime', 'agent/config']),
    mayOnlySee('agent/commands', [
      'shared',
      'agent/domain',
      'agent/canary',
      'agent/gpu-test/gpu-test',
      'agent/observation',
      'agent/guarded-ports',
      'agent/journal',
      'agent/host/gpus/driver',
      'agent/outages',
      'agent/link/outbox',
      'agent/runtime/workload',
    ]),
    mayOnlySee('agent/watch', [
      'shared',
      'agent/outages',
      'agent/domain',
      'agent/journal',
      'agent/commands',
      'agent/observation',
      'agent/guarded-ports',
      'agent/link/outbox',
      'agent/runtime/workload',
    ]),
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.base.json' },
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(dist|node_modules)/' },
  },
};
