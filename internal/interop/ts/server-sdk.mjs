// The test server built with @modelcontextprotocol/sdk, the first generation: legacy versions only.
import { randomUUID } from 'node:crypto';

import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';

import { addExtra, bodyOf, Events, info, instructions, register, rootsChanged } from './server.mjs';

function newServer() {
  const server = new McpServer(info, { capabilities: { logging: {}, resources: { subscribe: true } }, instructions });
  const kit = newKit(server);
  register(kit);
  const subscribed = new Set();
  server.server.setRequestHandler(types.SubscribeRequestSchema, ({ params }) => (subscribed.add(params.uri), {}));
  server.server.setRequestHandler(types.UnsubscribeRequestSchema, ({ params }) => (subscribed.delete(params.uri), {}));
  server.server.setNotificationHandler(types.RootsListChangedNotificationSchema, rootsChanged.signal);
  kit.updated = (uri) => (subscribed.has(uri) ? server.server.sendResourceUpdated({ uri }) : undefined);
  return server;
}

function newKit(server) {
  const { server: low } = server;
  const ask = {
    'elicitation/create': (params, options) => low.elicitInput(params, options),
    'sampling/createMessage': (params, options) => low.createMessage(params, options),
    'roots/list': (params, options) => low.listRoots(params, options),
  };
  const completed = (schema, complete) => completable(schema.optional(), complete);
  const kit = { completed, UrlElicitationRequiredError: types.UrlElicitationRequiredError };

  // Sends the questions that the handler returns, and calls the handler again with the answers.
  const answered = (fn) => async (args, extra) => {
    const call = {
      answers: {},
      signal: extra.signal,
      meta: extra._meta,
      closeStream: extra.closeSSEStream,
      progress: async (params) => {
        const progressToken = extra._meta?.progressToken;
        if (progressToken !== undefined) await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, ...params } });
      },
      log: (level, data) => server.sendLoggingMessage({ level, logger: 'interop', data }, extra.sessionId),
      updated: (uri) => kit.updated(uri),
      added: (it) => addExtra(kit, it),
      complete: (id) => low.createElicitationCompletionNotifier(id),
    };
    for (;;) {
      const result = await fn(args, call);
      if (!result.questions) return result;
      const options = { signal: extra.signal, relatedRequestId: extra.requestId };
      const answers = Object.entries(result.questions).map(async ([key, { method, params }]) => [key, await ask[method]({ ...params, ...(params.mode === 'url' && { elicitationId: randomUUID() }) }, options)]);
      call.answers = Object.fromEntries(await Promise.all(answers));
      call.state = result.state;
    }
  };
  const shape = (schema) => schema?.shape;
  kit.tool = (name, { inputSchema, outputSchema, ...config }, fn) => {
    const run = answered(fn);
    server.registerTool(name, { ...config, inputSchema: shape(inputSchema), outputSchema: shape(outputSchema) }, inputSchema ? run : (extra) => run({}, extra));
  };
  kit.prompt = (name, { argsSchema, ...config }, fn) => {
    const run = answered(fn);
    server.registerPrompt(name, { ...config, argsSchema: shape(argsSchema) }, argsSchema ? run : (extra) => run({}, extra));
  };
  kit.resource = (name, uri, { cacheHint, ...config }, fn) => {
    const run = answered((u, call) => fn(u.href, call));
    server.registerResource(name, uri, config, run);
  };
  kit.template = (name, uri, complete, config, fn) =>
    server.registerResource(name, new ResourceTemplate(uri, { list: undefined, complete }), config, (u, variables) => fn(u.href, variables));
  return kit;
}

export const stdio = () => newServer().connect(new StdioServerTransport());

const sessions = new Map(); // transports by their session IDs

async function streamable(req, res) {
  const id = req.headers['mcp-session-id'];
  if (id !== undefined) {
    const known = sessions.get(id);
    return known ? known.handleRequest(req, res) : res.writeHead(404).end();
  }
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: new Events(),
    retryInterval: 10,
    onsessioninitialized: (session) => void sessions.set(session, transport),
    onsessionclosed: (session) => void sessions.delete(session),
  });
  await newServer().connect(transport);
  await transport.handleRequest(req, res);
}

/** Handles HTTP requests: Streamable HTTP at /mcp, HTTP+SSE at /sse. */
export async function http(req, res) {
  const url = new URL(req.url, 'http://localhost');
  if (url.pathname === '/mcp') return streamable(req, res);
  if (url.pathname === '/sse' && req.method === 'GET') {
    const transport = new SSEServerTransport('/messages', res);
    sessions.set(transport.sessionId, transport);
    res.on('close', () => sessions.delete(transport.sessionId));
    return newServer().connect(transport);
  }
  const known = url.pathname === '/messages' && sessions.get(url.searchParams.get('sessionId'));
  if (!known) return res.writeHead(url.pathname === '/sse' ? 405 : 404).end();
  return known.handlePostMessage(req, res, await bodyOf(req));
}
