// The inns: servers of others, which our client visits. interop/visitor says what they offer.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));

export const legacy = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
export const modern = '2026-07-28';

function cannotMcpGo({ transport, version, family, stateless }) {
  const twoLoops = 'two loops of the SDK send what a handler says, in any order';
  if (stateless) return { progress: twoLoops };
  const modernHTTP = family === 'modern' && transport === 'http';
  const forms = ['elicitation: accepted', 'elicitation: declined, cancelled', 'elicitation: one question after the other', 'three questions at once', 'a prompt that asks', 'cancellation takes back the question', 'elicitation: a URL'];
  const asks = [...(version >= '2025-06-18' ? forms : []), 'sampling', 'roots'];
  return {
    ...(version >= '2025-06-18' && { 'a resource that asks': 'a handler of the SDK returns contents or an error, and no questions' }),
    ...(version >= '2025-06-18' && family === 'legacy' && transport === 'stdio' && { 'cancellation takes back the question': 'the SDK does not say that it waits no longer' }),
    ...(family === 'legacy' && transport === 'http' && { progress: twoLoops }),
    ...(version === '2025-11-25' && transport === 'http' && { 'a stream that ends and is picked up again': 'the SDK has no way to end a stream early' }),
    ...(family === 'modern' && { 'an unknown resource is told from other mistakes': 'the SDK says -32602 and no more, as it does of bad arguments' }),
    ...(modernHTTP && { 'an updated resource': 'the SDK sends updates to no session of this version' }),
    ...(transport === 'sse' && Object.fromEntries(asks.map((check) => [check, 'the SDK asks nothing over HTTP+SSE']))),
  };
}

const tsInn = (sdk) => ({ transport, stateless }, addr) => [process.execPath, join(here, 'ts/host.mjs'), JSON.stringify({ sdk, transport, addr, stateless })];
/**
 * Returns the inns. Serve is the command of one for a row of the table; versions, transports, sse and json say which rows there are with the
 * version pinned, and auto which to arrive at by negotiation. Cannot says which checks have nothing to look at, and why.
 */
export const innsOf = (bin) => [
  {
    name: 'mcpkit at go-sdk', versions: [...legacy, modern], transports: ['stdio', 'http'], sse: true,
    // Over HTTP a server of the SDK is either one that is stateless or one that is legacy.
    auto: [['stdio', modern], ['http', modern], ['http', legacy.at(-1)], ['sse', legacy.at(-1)]],
    serve: (row, addr) => [join(bin, 'goclient'), JSON.stringify({ Inn: row.transport, Addr: addr, Stateless: row.stateless || row.family === 'modern', JSON: row.json })],
    json: true,
    cannot: (row) => ({
      ...(row.json && { progress: 'it comes on another stream than the result, and may come after it', 'a stream that ends and is picked up again': 'no call has one' }),
      ...(!row.stateless && row.family === 'legacy' && row.version >= '2025-06-18' && { 'a resource that asks': 'the SDK takes the question of a resource for no contents where the client is a legacy one' }),
    }),
  },
  {
    name: 'mcpkit at mcp-go', versions: [...legacy, modern], transports: ['stdio', 'http'], sse: true,
    auto: [['stdio', modern], ['http', modern], ['sse', legacy.at(-1)]],
    serve: ({ transport, stateless }, addr) => [join(bin, 'mcpgo'), ...(transport === 'stdio' ? ['stdio'] : [transport, addr]), ...(stateless ? ['stateless'] : [])],
    cannot: cannotMcpGo,
  },
  {
    name: 'mcpkit at @modelcontextprotocol/sdk', versions: legacy, transports: ['stdio', 'http'], sse: true, serve: tsInn('sdk'),
    auto: [['stdio', legacy.at(-1)], ['http', legacy.at(-1)], ['sse', legacy.at(-1)]],
    cannot: ({ stateless }) => ({
      ...(stateless && { progress: 'each answer is one piece of JSON, and nothing comes before it' }),
      'pages of tools': 'McpServer has none',
      'an unknown resource is told from other mistakes': 'the SDK says -32602 and no more, as it does of bad arguments',
    }),
  },
  {
    name: 'mcpkit at @modelcontextprotocol/server', versions: [...legacy, modern], transports: ['stdio', 'http'], serve: tsInn('server'),
    auto: [['stdio', modern], ['http', modern]],
    cannot: () => ({ 'pages of tools': 'McpServer has none' }),
  },
];
