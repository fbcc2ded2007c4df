// The test server built with @modelcontextprotocol/server, the second generation: legacy and modern
// versions.
import { randomUUID } from 'node:crypto';

import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import { completable, createMcpHandler, inputRequired, isLegacyRequest, McpServer, ResourceTemplate, UrlElicitationRequiredError } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

import { addExtra, bodyOf, Events, info, instructions, register, rootsChanged } from './server.mjs';

// bus, if given, sends the list changes: it is needed where each request has its own server.
function newServer(family, bus) {
  const list = { listChanged: true };
  const capabilities = { logging: {}, tools: list, prompts: list, resources: { ...list, subscribe: true } };
  const server = new McpServer(info, { capabilities, instructions });
  const kit = newKit(server, family, bus);
  register(kit);
  const subscribed = new Set();
  kit.updated = (uri) => (family === 'modern' || subscribed.has(uri) ? server.server.sendResourceUpdated({ uri }) : undefined);
  if (family === 'legacy') {
    server.server.setRequestHandler('resources/subscribe', ({ params }) => (subscribed.add(params.uri), {}));
    server.server.setRequestHandler('resources/unsubscribe', ({ params }) => (subscribed.delete(params.uri), {}));
    server.server.setNotificationHandler('notifications/roots/list_changed', rootsChanged.signal);
  }
  return server;
}

function newKit(server, family, bus) {
  const completed = (schema, complete) => completable(schema, complete).optional();
  const kit = { completed, UrlElicitationRequiredError, arrays: family === 'modern' };

  // Returns the questions of the handler; the SDK sends them to legacy and modern clients alike.
  const answered = (fn) => async (args, ctx) => {
    const { mcpReq, http } = ctx;
    const result = await fn(args, {
      answers: mcpReq.inputResponses ?? {},
      state: mcpReq.requestState(),
      signal: mcpReq.signal,
      meta: mcpReq._meta,
      closeStream: http?.closeSSE,
      progress: async (params) => {
        const progressToken = mcpReq._meta?.progressToken;
        if (progressToken !== undefined) await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, ...params } });
      },
      log: (level, data) => mcpReq.log(level, data, 'interop'),
      updated: (uri) => (bus ? bus.resourceUpdated(uri) : kit.updated(uri)),
      added: (it) => (bus ? bus[`${it.list}Changed`]() : addExtra(kit, it)),
      complete: (id) => server.server.createElicitationCompletionNotifier(id),
    });
    return result.questions ? inputRequired({ inputRequests: result.questions, requestState: result.state }) : result;
  };
  kit.tool = (name, config, fn) => {
    const run = answered(fn);
    server.registerTool(name, config, config.inputSchema ? run : (ctx) => run({}, ctx));
  };
  kit.prompt = (name, config, fn) => {
    const run = answered(fn);
    server.registerPrompt(name, config, config.argsSchema ? run : (ctx) => run({}, ctx));
  };
  kit.resource = (name, uri, config, fn) => server.registerResource(name, uri, config, answered((u, call) => fn(u.href, call)));
  kit.template = (name, uri, complete, config, fn) =>
    server.registerResource(name, new ResourceTemplate(uri, { list: undefined, complete }), config, (u, variables) => fn(u.href, variables));
  return kit;
}

export const stdio = () => serveStdio(({ era }) => newServer(era));

const modern = createMcpHandler(({ era }) => newServer(era, modern.notify), { legacy: 'reject' });
const answerModern = toNodeHandler(modern);
const sessions = new Map(); // transports by their session IDs

async function legacy(req, res, body) {
  const id = req.headers['mcp-session-id'];
  if (id !== undefined) {
    const known = sessions.get(id);
    return known ? known.handleRequest(req, res, body) : res.writeHead(404).end();
  }
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: new Events(),
    retryInterval: 10,
    onsessioninitialized: (session) => void sessions.set(session, transport),
    onsessionclosed: (session) => void sessions.delete(session),
  });
  await newServer('legacy').connect(transport);
  await transport.handleRequest(req, res, body);
}

/** Handles HTTP requests: modern ones without a session, legacy ones in sessions. */
export async function http(req, res) {
  const body = await bodyOf(req);
  const isLegacy = await isLegacyRequest(await toWebRequest(req, body));
  return isLegacy ? legacy(req, res, body) : answerModern(req, res, body);
}
