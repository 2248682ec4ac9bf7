import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import { SerializerSelector, type SerializerFactory } from '@fastify/fast-json-stringify-compiler';
import type { Server as TlsServer } from 'node:tls';
import {
  LogController,
  fastify,
  type FastifyInstance,
  type FastifyPluginAsync,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import { isUuid } from '../../shared/ids.js';
import type { Logger } from '../../shared/logger.js';
import { Refusal } from '../domain/refusal.js';
import type { RateLimits } from '../config.js';
import type { App } from '../services/parts/parts.js';
import type { ServerIdentity } from '../../shared/network/server-identity.js';
import { MINUTE_MS } from '../../shared/time.js';
import type { ConsoleFiles } from './console/files.js';
import { consolePageNotFound, consoleRoutes } from './console/routes.js';
import { demandProofs } from './access/demand-proofs.js';
import { boundConnections } from './limits/connections.js';
import { announceDeprecations } from './schema/deprecations.js';
import { announceDrill } from './drill.js';
import { runHandlers } from './run-handlers.js';
import { awaitCommits } from './answers/await-commits.js';
import { lingerAfterEarlyAnswers } from './answers/early-answers.js';
import { answerClientErrors, handleErrors } from './errors/errors.js';
import { refuseOnFullDisk } from './full-disk.js';
import { answerUnknownRoutes, answerUnreadable } from './answers/not-found.js';
import { boundLargeBodies } from './limits/large-bodies.js';
import { shareLists } from './limits/list-turns.js';
import { documentApi } from './openapi/openapi.js';
import { enforcePolicies } from './access/policy.js';
import { EventStreams } from './events/event-streams.js';
import type { Metrics } from './metrics/metrics.js';
import type { ReleaseFile } from '../host-release/release-file.js';
import { installRoutes } from './install/routes.js';
import { limitRates } from './limits/rate-limits.js';
import { mcpRoutes } from './mcp/routes.js';
import { pageRoutes } from './pages/page-routes.js';
import { renewFirst } from './pages/visitor.js';
import { readJson, refuseEncodedBodies } from './schema/read-bodies.js';
import { RequestLogger } from './request-logger.js';
import { accountLinkRoutes } from './routes/identity/account-links.js';
import { deviceCodeRoutes } from './routes/identity/device-codes.js';
import { accountRoutes, authRoutes } from './routes/identity/accounts.js';
import { ownInviteRoutes } from './routes/identity/own-invites.js';
import { apiKeyRoutes } from './routes/api-keys.js';
import { auditLogRoutes } from './routes/audit-log.js';
import { billingRoutes } from './routes/billing/billing.js';
import { billingSummaryRoutes } from './routes/billing/billing-summary.js';
import { estimateRoutes } from './routes/instances/estimate.js';
import { eventRoutes } from './routes/events.js';
import { factorRoutes } from './routes/factors.js';
import { healthRoutes } from './routes/health.js';
import { findingRoutes } from './routes/operator/findings.js';
import { rolloutRoutes } from './routes/operator/rollouts.js';
import { identityRoutes } from './routes/identity/identities.js';
import { instanceAccessRoutes } from './routes/instances/instance-access.js';
import { instanceReadingRoutes } from './routes/instances/instance-reads.js';
import { instanceSettingsRoutes } from './routes/instances/instance-settings.js';
import { instanceRoutes } from './routes/instances/instances.js';
import { instanceScheduleRoutes } from './routes/instances/instance-schedule.js';
import { instanceUseRoutes } from './routes/instances/instance-use.js';
import { mailSettingsRoutes, unsubscribeRoutes } from './routes/mail.js';
import { enrollmentTokenRoutes } from './routes/enrollment-tokens.js';
import { meterIntervalRoutes } from './routes/billing/meter-intervals.js';
import { metricsRoutes } from './routes/metrics.js';
import { offerRoutes } from './routes/offers.js';
import {
  credentialRoutes,
  gpuOwnerRoutes,
  machineTermsRoutes,
  machineListRoutes,
  operatorMachineRoutes,
} from './routes/operator/machines.js';
import { organizationContentRoutes, peopleRoutes, suspensionRoutes } from './routes/operator/acts.js';
import { issuerRoutes } from './routes/operator/issuers.js';
import { operatorControlPlaneRoutes } from './routes/operator/control-plane.js';
import { operatorMoneyRoutes } from './routes/operator/money.js';
import { operatorOverviewRoutes } from './routes/operator/overview.js';
import { operatorOfferRoutes } from './routes/operator/offers.js';
import { operatorIgnoredStopRoutes } from './routes/operator/ignored-stops.js';
import { operatorInstanceRoutes } from './routes/operator/instances.js';
import { operatorOversightRoutes, quarantineRoutes } from './routes/operator/oversight.js';
import { operatorUserRoutes } from './routes/operator/users.js';
import { operatorRoutes } from './routes/operator/organizations.js';
import { systemTemplateRoutes } from './routes/operator/templates.js';
import { inviteRoutes, memberRoutes, organizationRoutes } from './routes/organizations.js';
import { sessionRoutes } from './routes/identity/sessions.js';
import { spendCapRoutes } from './routes/billing/spend-caps.js';
import type { Routes } from './routes/routes.js';
import { sshKeyRoutes } from './routes/ssh-keys.js';
import { templateEditingRoutes, templateRoutes } from './routes/templates.js';
import { transactionsCsvRoutes } from './routes/billing/transactions-csv.js';
import { webhookDeliveryRoutes, webhookEndpointRoutes } from './routes/webhook-endpoints.js';
import { webhookRoutes } from './routes/webhooks.js';
import { validateStrictly } from './schema/validation.js';

const BODY_LIMIT_BYTES = 256 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;
/** The longest parameter that fits into a request, so that a malformed id of any length gets the same answer as an unknown id. */
const MAX_PARAMETER_CHARS = MAX_HEADER_BYTES;
const REQUEST_TIMEOUT_MS = 30_000;
const CONNECTION_TIMEOUT_MS = MINUTE_MS;
const HANDSHAKE_MS = 5_000;

/** Creates the server of the REST API and the console, with TLS if there is an identity. It does not listen yet. */
export async function createHttpServer(
  platform: App,
  logger: Logger,
  limits: RateLimits,
  metrics: Metrics,
  identity?: ServerIdentity,
  consoleFiles?: ConsoleFiles,
  release?: ReleaseFile,
): Promise<FastifyInstance> {
  const app = fastify({
    loggerInstance: logger,
    genReqId: () => platform.ids.uuid(),
    bodyLimit: BODY_LIMIT_BYTES,
    ...transportOf(identity),
    clientErrorHandler: answerClientErrors(platform.ids),
    // A reverse proxy on this machine names the client's address.
    trustProxy: 'loopback',
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionTimeout: CONNECTION_TIMEOUT_MS,
    forceCloseConnections: 'idle',
    // A slow disk delays a start, and does not end it.
    pluginTimeout: 0,
    childLoggerFactory: (parent, bindings) => new RequestLogger(parent, bindings),
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    // Each HEAD route has the policy of its GET route.
    exposeHeadRoutes: true,
    schemaController: { compilersFactory: { buildSerializer: serializersLater } },
    return503OnClosing: false,
    routerOptions: { maxParamLength: MAX_PARAMETER_CHARS },
    frameworkErrors: answerUnreadable(platform),
  }).withTypeProvider<TypeBoxTypeProvider>() as unknown as FastifyInstance;
  identity?.follow(({ certificate, key }) =>
    (app.server as unknown as TlsServer).setSecureContext({ cert: certificate, key }),
  );
  boundConnections(app.server);
  setHeaders(app, platform);
  announceDeprecations(app);
  if (platform.isDrill) announceDrill(app);
  lingerAfterEarlyAnswers(app, platform.clock);
  runHandlers(app, platform.store);
  awaitCommits(app, platform.store);
  refuseWhileClosing(app);
  logRequests(app, logger);
  metrics.observe(app);
  validateStrictly(app);
  refuseEncodedBodies(app);
  readJson(app);
  handleErrors(app);
  answerUnknownRoutes(app, platform, consoleFiles && consolePageNotFound(consoleFiles));
  limitRates(app, limits, platform);
  demandProofs(app, platform);
  await documentApi(app, platform.abuse);
  enforcePolicies(app, platform);
  refuseOnFullDisk(app, platform);
  boundLargeBodies(app, platform, BODY_LIMIT_BYTES);
  shareLists(app, platform);
  for (const register of routesOf(platform, metrics, release))
    await app.register(
      named('routes', async (scope) => register(scope.withTypeProvider<TypeBoxTypeProvider>(), platform)),
    );
  if (consoleFiles) {
    const renew: Parameters<typeof consoleRoutes>[1] = (request, reply) => renewFirst(platform, request, reply);
    await app.register(async (scope) => consoleRoutes(consoleFiles, renew)(scope));
  }
  if (release) await app.register(async (scope) => installRoutes(release)(scope, platform));
  await app.ready();
  return app;
}

/** Names a plugin. For one without a name, Fastify looks at every module that is loaded. */
function named<Plugin extends FastifyPluginAsync>(name: string, plugin: Plugin): Plugin {
  return Object.assign(plugin, { [Symbol.for('fastify.display-name')]: name });
}

/** Returns the routes of every resource. */
function routesOf(platform: App, metrics: Metrics, release: ReleaseFile | undefined): Routes[] {
  const streams = new EventStreams(platform);
  return [
    credentialRoutes,
    enrollmentTokenRoutes(release),
    eventRoutes(streams),
    healthRoutes,
    metricsRoutes(metrics, streams),
    accountRoutes,
    ownInviteRoutes,
    apiKeyRoutes,
    auditLogRoutes,
    authRoutes,
    accountLinkRoutes,
    deviceCodeRoutes,
    billingRoutes,
    billingSummaryRoutes,
    estimateRoutes,
    ...factorRoutes,
    findingRoutes,
    identityRoutes,
    instanceAccessRoutes,
    instanceReadingRoutes,
    instanceRoutes,
    instanceSettingsRoutes,
    instanceScheduleRoutes,
    instanceUseRoutes,
    inviteRoutes,
    issuerRoutes,
    gpuOwnerRoutes,
    machineTermsRoutes,
    mailSettingsRoutes,
    meterIntervalRoutes,
    memberRoutes,
    offerRoutes,
    operatorMachineRoutes,
    rolloutRoutes,
    machineListRoutes(metrics),
    operatorControlPlaneRoutes,
    operatorMoneyRoutes,
    organizationContentRoutes,
    peopleRoutes,
    suspensionRoutes,
    operatorOfferRoutes,
    operatorOverviewRoutes(metrics),
    operatorOversightRoutes,
    operatorIgnoredStopRoutes,
    operatorInstanceRoutes,
    operatorRoutes,
    operatorUserRoutes,
    organizationRoutes,
    quarantineRoutes,
    sessionRoutes,
    spendCapRoutes,
    sshKeyRoutes,
    systemTemplateRoutes,
    templateEditingRoutes,
    templateRoutes,
    transactionsCsvRoutes,
    webhookDeliveryRoutes,
    webhookEndpointRoutes,
    unsubscribeRoutes,
    mcpRoutes,
    pageRoutes,
    ...(platform.payments.webhook ? [webhookRoutes(platform.payments.webhook)] : []),
  ];
}

/** Sets the headers of every answer. */
function setHeaders(app: FastifyInstance, { clock }: App): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    void reply.header('X-Request-Id', request.id);
    // The clock by which everything here is decided: the console counts from it.
    void reply.header('Date', new Date(clock.now()).toUTCString());
    // Of what a route answers, its own address counts: in the one that was sent, letters can be written as %76.
    if ((request.routeOptions.url ?? request.url).startsWith('/v1')) {
      // Responses are for one caller only and must not be cached; browsers must not guess another content type.
      void reply.header('Cache-Control', 'no-store');
      void reply.header('X-Content-Type-Options', 'nosniff');
      // Pages of other origins cannot embed them, not even pages at another port of the same name, which gets the same cookies.
      void reply.header('Cross-Origin-Resource-Policy', 'same-origin');
    }
    done(null, payload);
  });
}

/** Returns the options of Node's server: HTTPS if there is a certificate, else HTTP. */
function transportOf(identity?: ServerIdentity): { http: object } {
  if (!identity) return { http: { maxHeaderSize: MAX_HEADER_BYTES } };
  const { certificate, key } = identity.current;
  const tls = { handshakeTimeout: HANDSHAKE_MS, cert: certificate, key };
  return { https: { maxHeaderSize: MAX_HEADER_BYTES, ...tls } } as unknown as { http: object };
}

type Serialize = ReturnType<ReturnType<SerializerFactory>>;

/** Serializers by their schema: most answers of different routes have the same, such as errors. To compile one takes milliseconds. */
const serializers = new Map<string, Serialize>();

/** Compiles a serializer when an answer needs it first. Schemas name no others: models become components in the document only. */
const serializersLater: SerializerFactory = (externalSchemas, options) => {
  const compile = SerializerSelector()(externalSchemas, options);
  return (route) => {
    let serialize: Serialize | undefined;
    return (data: unknown) => (serialize ??= compiledOnce(route.schema, () => compile(route)))(data);
  };
};

function compiledOnce(schema: unknown, compile: () => Serialize): Serialize {
  const key = JSON.stringify(schema);
  const known = serializers.get(key);
  if (known) return known;
  const serialize = compile();
  serializers.set(key, serialize);
  return serialize;
}

/** Refuses new requests with UNAVAILABLE while the server closes. Requests in progress are answered. */
function refuseWhileClosing(app: FastifyInstance): void {
  let closing = false;
  app.addHook('preClose', async () => {
    closing = true;
  });
  app.addHook('onRequest', (_request, _reply, done) => {
    done(closing ? new Refusal('UNAVAILABLE', 'the control plane is stopping; try again shortly') : undefined);
  });
}

function logRequests(app: FastifyInstance, logger: Logger): void {
  app.addHook('onResponse', (request, reply, done) => {
    done();
    const level = levelOf(request, reply);
    if (!logger.isLevelEnabled(level)) return;
    const { method, routeOptions } = request;
    const { id } = (request.params ?? {}) as { id?: string };
    // What is no id is a stranger's text, or a secret that was put in the wrong place.
    const isOfInstance = routeOptions.url?.startsWith('/v1/instances/:id') && id !== undefined && isUuid(id);
    const about = isOfInstance ? { instanceId: id } : {};
    request.log[level](
      {
        ...about,
        ...whoAsked(request),
        method,
        route: routeOptions.url,
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime),
      },
      'request',
    );
  });
}

/** Returns the log level of a request. Successful reads are frequent and of little interest, so they are logged at `debug`. */
function levelOf({ method, routeOptions }: FastifyRequest, { statusCode }: FastifyReply): 'debug' | 'info' {
  const reads = method === 'GET' || method === 'HEAD';
  // Scanners request unknown addresses all the time.
  const isNothing = routeOptions.url === undefined && statusCode === 404;
  return (reads && statusCode < 400) || isNothing ? 'debug' : 'info';
}

/** Returns the log fields that identify the caller: address, user or key, and organization. */
function whoAsked({ caller, ip }: FastifyRequest): object {
  if (!caller) return { address: ip };
  const key = caller.kind === 'api_key' ? { keyId: caller.keyId } : {};
  const user = caller.kind === 'api_key' ? {} : { userId: caller.userId };
  const organization = caller.kind === 'no_organization' ? {} : { organizationId: caller.organizationId };
  return { address: ip, ...user, ...key, ...organization };
}
