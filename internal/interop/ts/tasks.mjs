// The requester of @modelcontextprotocol/ext-tasks, with the SDK's client of the second generation.
import { createTaskSessionFromClient, toolDeclarationFromMcpTool } from '@modelcontextprotocol/ext-tasks/client';

import { capabilities, info } from './adapter.mjs';

/**
 * Returns a function that opens a session for tasks, or undefined: for 2026-07-28, the package needs
 * a way to send requests past the SDK, which is written here for HTTP alone. The function takes the
 * server's tools, and what answers its questions.
 */
export function taskSessions(client, server, { version, modern, since }) {
  if (!since('2025-11-25') || (modern && !server.url)) return undefined;
  const raw = modern && { rawDispatch: posting(server.url, version), v2RequestFraming: { protocolVersion: version, clientInfo: info, clientCapabilities: capabilities } };
  return (tools, onInputRequest) => {
    const known = new Map(tools.map((tool) => [tool.name, toolDeclarationFromMcpTool(tool)]));
    return createTaskSessionFromClient(client, { endpointId: 'interop', ...raw, tools: { currentTool: (name) => known.get(name) }, onInputRequest });
  };
}

/** Returns a function that posts a request and returns the response. */
function posting(url, version) {
  let last = 0;
  return async (request, { signal, context } = {}) => {
    const id = `tasks-${++last}`;
    const headers = new Headers({
      'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', 'Mcp-Protocol-Version': version,
      'Mcp-Method': request.method, 'Mcp-Name': request.params.name ?? request.params.taskId,
    });
    for (const [name, value] of Object.entries(context?.headers ?? {})) headers.set(name, value);
    const response = await fetch(url, { method: 'POST', signal, headers, body: JSON.stringify({ jsonrpc: '2.0', id, ...request }) });
    const text = await response.text();
    const messages = text.startsWith('{') ? [text] : text.split('\n').filter((line) => line.startsWith('data:')).map((line) => line.slice(5));
    const { result, error } = messages.map((message) => JSON.parse(message)).find((message) => message.id === id);
    return error ? { kind: 'error', error } : { kind: 'result', result };
  };
}
