// The adapter of @modelcontextprotocol/client, the second generation: legacy and modern versions.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { capabilities, info, record, watchedFetch } from './adapter.mjs';
import { taskSessions } from './tasks.mjs';

const anything = { '~standard': { version: 1, vendor: 'interop', validate: (value) => ({ value }) } };

export async function connect(server, t) {
  const versions = t.modern
    ? { versionNegotiation: { mode: 'auto' } }
    : { supportedProtocolVersions: [t.version] };
  const client = new Client(info, { capabilities, ...versions });
  const { fetch, streaming } = watchedFetch();
  const transport = server.url
    ? new StreamableHTTPClientTransport(new URL(server.url), { fetch })
    : new StdioClientTransport({ command: server.command, args: server.args });
  const recorded = record(transport, client);
  await client.connect(transport);
  return {
    ...recorded,
    client,
    version: client.getNegotiatedProtocolVersion(),
    streaming: server.url ? streaming : undefined,
    skills: new SkillsClient(client),
    tasks: taskSessions(client, server, t),
    call: (params, options) => client.callTool(params, options),
    request: (request) => client.request(request, anything),
    on: (method, fn) => (method.startsWith('notifications/') ? client.setNotificationHandler(method, fn) : client.setRequestHandler(method, fn)),
    close: async () => {
      if (!t.modern) await transport.terminateSession?.();
      await client.close();
    },
  };
}
