/**
 * Which part may know which, as ARCHITECTURE.md has it: dependencies point down, and each rule names what its part may see.
 */
const mayOnlySee = (part, others, except = []) => ({
  name: `${part} sees only its own`,
  severity: 'error',
  from: { path: `^${part}/`, ...(except.length > 0 && { pathNot: except.map((path) => `^${path}/`) }) },
  to: {
    path: '^(shared|client|control-plane|agent|test|scripts)/',
    pathNot: [part, ...others].map((path) => `^${path}(/|\\.)`),
  },
});

/** The folders of control-plane/services, from the lowest floor to the highest: each sees those before it. */
const SERVICE_FLOORS = [
  'secrets',
  'connections',
  'system',
  'events',
  'mail',
  'accounts',
  'webhooks',
  'machines',
  'catalogue',
  'metering',
  'instances',
  'measurements',
  'billing',
  'reconciler',
  'actions',
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
    mayOnlySee('control-plane/payments', ['shared', 'control-plane/domain']),
    mayOnlySee('control-plane/outbound', ['shared', 'control-plane/domain']),
    mayOnlySee('control-plane/mail', ['shared', 'control-plane/domain']),
    mayOnlySee(
      'control-plane/http',
      ['shared', 'control-plane/domain', 'control-plane/services', 'control-plane/config'],
      ['control-plane/http/mcp'],
    ),
    // The server for AI agents calls the API as any client does.
    mayOnlySee('control-plane/http/mcp', [
      'shared',
      'client',
      'control-plane/domain',
      'control-plane/services',
      'control-plane/http',
    ]),
    mayOnlySee('control-plane/grpc', ['shared', 'control-plane/domain', 'control-plane/services']),
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
    mayOnlySee('agent/observation', ['shared', 'agent/domain', 'agent/runtime/workload']),
    mayOnlySee('agent/guarded-ports', [
      'shared',
      'agent/domain',
      'agent/observation',
      'agent/proxy',
      'agent/runtime/workload',
    ]),
    mayOnlySee('agent/canary', ['shared', 'agent/runtime/workload']),
    mayOnlySee('agent/commands', [
      'shared',
      'agent/domain',
      'agent/canary',
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
