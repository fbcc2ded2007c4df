// The adapter of @modelcontextprotocol/sdk, the first generation: legacy versions only.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';

import { capabilities, info, record, watchedFetch } from './adapter.mjs';

const requests = {
  'elicitation/create': types.ElicitRequestSchema,
  'sampling/createMessage': types.CreateMessageRequestSchema,
  'roots/list': types.ListRootsRequestSchema,
};

const notifications = {
  'notifications/message': types.LoggingMessageNotificationSchema,
  'notifications/tools/list_changed': types.ToolListChangedNotificationSchema,
  'notifications/prompts/list_changed': types.PromptListChangedNotificationSchema,
  'notifications/resources/updated': types.ResourceUpdatedNotificationSchema,
};

export async function connect(server) {
  const client = new Client(info, { capabilities });
  const { fetch, streaming } = watchedFetch();
  const transport = server.sse
    ? new SSEClientTransport(new URL(server.url))
    : server.url
    ? new StreamableHTTPClientTransport(new URL(server.url), { fetch })
    : new StdioClientTransport({ command: server.command, args: server.args });
  const recorded = record(transport, client);
  let version;
  const setProtocolVersion = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (v) => {
    version = v;
    setProtocolVersion?.(v);
  };
  await client.connect(transport);
  return {
    ...recorded,
    client,
    version,
    streaming: server.url && !server.sse ? streaming : undefined,
    call: (params, options) => client.callTool(params, undefined, options),
    request: (request) => client.request(request, types.ResultSchema),
    on: (method, fn) => (requests[method] ? client.setRequestHandler(requests[method], fn) : client.setNotificationHandler(notifications[method], fn)),
    close: async () => {
      await transport.terminateSession?.();
      await client.close();
    },
  };
}
