// The test servers, built with other SDKs. The doc comment of internal/interop/client lists their features.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));

export const legacy = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
export const modern = '2026-07-28';

function cannotMcpGo({ transport, version, family, stateless }) {
  const twoLoops = 'two loops of the SDK send the notifications of a handler, in any order';
  if (stateless) return { progress: twoLoops };
  const modernHTTP = family === 'modern' && transport === 'http';
  const forms = ['elicitation: accepted', 'elicitation: declined, cancelled', 'elicitation: two questions in a row', 'three questions at once', 'a prompt that asks', 'cancelling a call cancels its question', 'elicitation: a URL'];
  const asks = [...(version >= '2025-06-18' ? forms : []), 'sampling', 'roots'];
  return {
    ...(version >= '2025-06-18' && { 'a resource that asks': 'a handler of the SDK returns contents or an error, but no questions' }),
    ...(version >= '2025-06-18' && family === 'legacy' && transport === 'stdio' && { 'cancelling a call cancels its question': 'the SDK does not cancel its requests' }),
    ...(family === 'legacy' && transport === 'http' && { progress: twoLoops }),
    ...(version === '2025-11-25' && transport === 'http' && { 'a closed stream is resumed': 'the SDK has no way to end a stream early' }),
    ...(family === 'modern' && { 'an unknown resource has an error of its own': 'the SDK reports -32602 without data, as for bad arguments' }),
    ...(modernHTTP && { 'an updated resource': 'the SDK sends no updates in this version' }),
    ...(transport === 'sse' && Object.fromEntries(asks.map((check) => [check, 'the SDK asks no questions over HTTP+SSE']))),
  };
}

const tsServer = (sdk) => ({ transport, stateless }, addr) => [process.execPath, join(here, 'ts/serve.mjs'), JSON.stringify({ sdk, transport, addr, stateless })];

/**
 * Returns the test servers. serve returns the command of a server for a row. versions, transports, sse and json list the
 * rows with a pinned version, auto those with a negotiated one. cannot returns the checks that the SDK cannot support,
 * with the reasons.
 */
export const testServers = (bin) => [
  {
    name: 'mcpkit at go-sdk', versions: [...legacy, modern], transports: ['stdio', 'http'], sse: true,
    // Over HTTP a server of the SDK is either stateless or legacy.
    auto: [['stdio', modern], ['http', modern], ['http', legacy.at(-1)], ['sse', legacy.at(-1)]],
    serve: (row, addr) => [join(bin, 'gosdk'), JSON.stringify({ Serve: row.transport, Addr: addr, Stateless: row.stateless || row.family === 'modern', JSON: row.json })],
    json: true,
    cannot: (row) => ({
      ...(row.json && { progress: 'it travels on another stream than the result, and may arrive after it', 'a closed stream is resumed': 'calls have no stream' }),
      ...(!row.stateless && row.family === 'legacy' && row.version >= '2025-06-18' && { 'a resource that asks': 'with legacy clients, the SDK treats the question as empty contents' }),
    }),
  },
  {
    name: 'mcpkit at mcp-go', versions: [...legacy, modern], transports: ['stdio', 'http'], sse: true,
    auto: [['stdio', modern], ['http', modern], ['sse', legacy.at(-1)]],
    serve: ({ transport, stateless }, addr) => [join(bin, 'mcpgo'), ...(transport === 'stdio' ? ['stdio'] : [transport, addr]), ...(stateless ? ['stateless'] : [])],
    cannot: cannotMcpGo,
  },
  {
    name: 'mcpkit at @modelcontextprotocol/sdk', versions: legacy, transports: ['stdio', 'http'], sse: true, serve: tsServer('sdk'),
    auto: [['stdio', legacy.at(-1)], ['http', legacy.at(-1)], ['sse', legacy.at(-1)]],
    cannot: ({ stateless }) => ({
      ...(stateless && { progress: 'each response is plain JSON, without notifications' }),
      'pages of tools': 'McpServer has none',
      'an unknown resource has an error of its own': 'the SDK reports -32602 without data, as for bad arguments',
    }),
  },
  {
    name: 'mcpkit at @modelcontextprotocol/server', versions: [...legacy, modern], transports: ['stdio', 'http'], serve: tsServer('server'),
    auto: [['stdio', modern], ['http', modern]],
    cannot: () => ({ 'pages of tools': 'McpServer has none' }),
  },
];
