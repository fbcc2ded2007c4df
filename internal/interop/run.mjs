// Runs every client with every transport and version, and prints a table. run.sh installs and
// builds what it needs.
//
// usage: node run.mjs BIN [WORD...]
//
// BIN is the folder with the programs server, notes, diary, board, fleet, gosdk, login, client and
// mcpgo. With words, only the rows run that contain all of them.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { legacy, modern, testServers } from './servers.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const [bin, ...words] = process.argv.slice(2);
// Milliseconds after which a server that does not start or end has failed, and a row. They are long
// because the machine may be busy.
const serverTimeout = 300_000;
const rowTimeout = 6 * serverTimeout;
const logs = join(bin, 'logs');

// The commands of the clients. Each takes its task as JSON.
const ts = (sdk) => (task) => [process.execPath, [join(here, 'ts/main.mjs'), JSON.stringify({ ...task, sdk })]];
const inspector = (task) => [process.execPath, [join(here, 'ts/inspector.mjs'), JSON.stringify(task)]];
const gosdk = (task) => [join(bin, 'gosdk'), [JSON.stringify(task)]];

// sse: the client also supports HTTP+SSE, in its newest legacy version. probes: whether the client
// may start one more stdio server to find out its versions, and end that one by a signal.
const clients = [
  { name: '@modelcontextprotocol/sdk', versions: [legacy.at(-1)], command: ts('sdk'), sse: true },
  { name: '@modelcontextprotocol/client', versions: [...legacy, modern], command: ts('client'), probes: (task) => task.version === modern },
  { name: '@modelcontextprotocol/client, auto', versions: [modern], negotiation: 'auto', command: ts('client'), probes: () => true },
  { name: '@modelcontextprotocol/inspector', versions: [legacy.at(-1), modern], command: inspector, probes: (task) => task.version === modern },
  { name: 'go-sdk', versions: [...legacy, modern], command: gosdk, sse: true },
];

// The logins: other clients at our server, and our client at a server of go-sdk and at the example
// server of the first-generation TypeScript SDK, which ends on SIGINT.
const diary = (addr) => [join(bin, 'diary'), '-http', addr, '-demo'];
const tsLogin = (sdk) => (task) => [process.execPath, [join(here, 'ts/login.mjs'), JSON.stringify({ ...task, sdk })]];
const example = join(here, 'node_modules/@modelcontextprotocol/sdk/dist/esm/examples/server/simpleStreamableHttp.js');
const ours = (task) => [join(bin, 'login'), [JSON.stringify(task)]];
const logins = [
  { name: '@modelcontextprotocol/sdk', versions: [legacy.at(-1)], command: tsLogin('sdk'), server: diary },
  { name: '@modelcontextprotocol/client', versions: [legacy.at(-1), modern], command: tsLogin('client'), server: diary },
  { name: 'go-sdk', versions: [legacy.at(-1), modern], command: gosdk, server: diary },
  { name: 'mcpkit at go-sdk', versions: [modern], command: ours, server: (addr) => [join(bin, 'login'), 'serve', addr, join(bin, 'gosdk')] },
  {
    name: 'mcpkit at @modelcontextprotocol/sdk', versions: [legacy.at(-1)], command: ours,
    server: () => [process.execPath, example, '--oauth', '--oauth-strict'],
    how: async (port) => ({ host: 'localhost', env: { MCP_PORT: port, MCP_AUTH_PORT: await freePort() }, signal: 'SIGINT' }),
  },
];

// The clients of examples/fleet, which call its replicas while they are killed.
const tsFleet = (sdk) => (task) => [process.execPath, [join(here, 'ts/fleet.mjs'), JSON.stringify({ ...task, sdk })]];
const fleets = [
  { name: '@modelcontextprotocol/sdk', versions: [legacy.at(-1)], command: tsFleet('sdk') },
  { name: '@modelcontextprotocol/client', versions: [legacy.at(-1), modern], command: tsFleet('client') },
  { name: 'go-sdk', versions: [...legacy, modern], command: gosdk },
];

// Our client, for the test servers of other SDKs.
const mcpkit = (task) => [join(bin, 'client'), [JSON.stringify(task)]];

// The host of MCP Apps, for a server with a page.
const apps = {
  name: '@modelcontextprotocol/ext-apps', versions: [legacy.at(-1), modern], probes: (task) => task.version === modern,
  command: (task) => [process.execPath, [join(here, 'ts/apps.mjs'), JSON.stringify(task)]], serve: () => [join(bin, 'board')],
};

const programs = {
  fixture: { stdio: [join(bin, 'server'), '-stdio'], http: (addr) => [join(bin, 'server'), '-addr', addr] },
  notes: { stdio: [join(bin, 'notes')], http: (addr) => [join(bin, 'notes'), '-http', addr] },
};

/**
 * Starts the servers of a row. Returns them by name, and end(), which shuts them down and returns
 * the faults.
 */
async function serversFor(row) {
  if (row.transport === 'login') {
    const { server, end } = await httpServer(join(logs, row.file), row.server, row.how);
    return { servers: server, end };
  }
  if (row.transport === 'fleet') {
    const { server, end } = await httpServer(join(logs, row.file), (addr) => [join(bin, 'fleet'), '-http', addr, '-kill']);
    return { servers: { fleet: new URL(server.url).origin }, end };
  }
  if (row.serve) {
    const log = join(logs, row.file);
    const { server, end } = await (row.transport === 'stdio' ? stdioServer(row, log, row.serve(row)) : httpServer(log, (addr) => row.serve(row, addr)));
    return { servers: { server: row.transport === 'sse' ? overSSE(server) : server }, end: async () => end() };
  }
  const servers = {};
  const ends = [];
  for (const [name, program] of Object.entries(programs)) {
    if (row.transport === 'sse' && name !== 'fixture') continue; // the others do not serve HTTP+SSE
    const log = join(logs, `${row.file}-${name}`);
    const { server, end } = await (row.transport === 'stdio' ? stdioServer(row, log, program.stdio) : httpServer(log, program.http));
    servers[name] = row.transport === 'sse' ? overSSE(server) : server;
    ends.push(end);
  }
  return { servers, end: async () => (await Promise.all(ends.map((end) => end()))).flat() };
}

const overSSE = (server) => ({ url: server.url.replace(/mcp$/, 'sse'), sse: true });

/** Returns a server that the client starts. watch.sh logs how it ends. */
function stdioServer(row, log, command) {
  const end = () => {
    const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
    const faults = [];
    const started = lines.filter((l) => l.startsWith('start ')).map((l) => l.split(' ')[1]);
    if (started.length === 0) faults.push('no server was started');
    for (const pid of started) {
      const [, , code, how] = lines.find((l) => l.startsWith(`end ${pid} `))?.split(' ') ?? [];
      if (code === undefined || isRunning(Number(pid))) faults.push(`server ${pid} is still running`);
      // The code is 143 if the signal arrives when the server has already ended with its input.
      else if (how === 'signal' && row.probes?.(row) && ['0', '143'].includes(code)) continue;
      else if (code !== '0' || how !== 'input') faults.push(`server ${pid} ended with ${code}, by ${how}`);
    }
    return faults;
  };
  return { server: { command: join(here, 'watch.sh'), args: [log, ...command] }, end };
}

function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Starts an HTTP server. end() signals it, and it must exit with code 0. */
async function httpServer(log, command, how) {
  const port = await freePort();
  const { host = '127.0.0.1', env, signal: stop = 'SIGTERM' } = (await how?.(port)) ?? {};
  const addr = `${host}:${port}`;
  const [file, ...args] = command(addr);
  const child = spawn(file, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ...env } });
  let stderr = '';
  child.stderr.on('data', (data) => (stderr += data));
  const ended = once(child, 'exit');
  const url = `http://${addr}/mcp`;
  for (const begun = Date.now(); ; ) {
    if (child.exitCode !== null || Date.now() - begun > serverTimeout) throw new Error(`${file} does not accept connections: ${stderr}`);
    try {
      await (await fetch(url, { method: 'OPTIONS' })).text();
      break;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  const end = async () => {
    if (child.exitCode !== null) return [`the server ended on its own with ${child.exitCode}: ${stderr}`];
    child.kill(stop);
    const late = setTimeout(() => child.kill('SIGKILL'), serverTimeout);
    const [code, signal] = await ended;
    clearTimeout(late);
    writeFileSync(`${log}.stderr`, stderr);
    return code === 0 ? [] : [`the server ended with ${code ?? signal}: ${stderr}`];
  };
  return { server: { url }, end };
}

/** Returns a free port below the range from which the kernel assigns ports to other processes. */
async function freePort() {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const listener = createServer().listen(port, '127.0.0.1');
    try {
      await once(listener, 'listening');
    } catch {
      continue; // taken
    }
    listener.close();
    await once(listener, 'close');
    return port;
  }
}

/** Runs one row. */
async function run(row) {
  const { servers, end } = await serversFor(row);
  const { transport, version, negotiation, stateless } = row;
  const [file, args] = row.command({ transport, version, negotiation, stateless, cannot: row.cannot?.(row), ...servers });
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (data) => (stdout += data));
  child.stderr.on('data', (data) => (stderr += data));
  const late = setTimeout(() => child.kill('SIGKILL'), rowTimeout);
  const [code, signal] = await once(child, 'close');
  clearTimeout(late);
  const checks = stdout.split('\n').filter(Boolean).map((l) => l.split('\t'));
  const faults = await end();
  if (code !== 0 && !checks.some(([verdict]) => verdict === 'FAIL')) faults.push(`the client ended with ${code ?? signal}: ${stderr}`);
  checks.push(faults.length ? ['FAIL', 'servers shut down', faults.join('; ')] : ['pass', 'servers shut down']);
  return checks;
}

const rowsOf = (client, transports) =>
  transports.flatMap((transport) => client.versions.map((version) => ({ ...client, transport, version, family: version === modern ? 'modern' : 'legacy' })));
const ourRows = testServers(bin).map((server) => ({ ...server, command: mcpkit, printed: new Set() })).flatMap(({ json, ...server }) => [
  ...rowsOf(server, server.transports),
  ...(server.sse ? rowsOf({ ...server, versions: [legacy.at(-1)] }, ['sse']) : []),
  ...rowsOf({ ...server, name: `${server.name}, stateless`, stateless: true, versions: [legacy.at(-1)] }, ['http']),
  ...(json ? rowsOf({ ...server, name: `${server.name}, JSON`, json: true, versions: [legacy.at(-1)] }, ['http']) : []),
  ...server.auto.flatMap(([transport, version]) => rowsOf({ ...server, name: `${server.name}, auto`, negotiation: 'auto', versions: [version] }, [transport])),
]);
const sse = clients.filter((client) => client.sse).map((client) => ({ ...client, versions: [legacy.at(-1)] }));
const rows = [...clients.flatMap((client) => rowsOf(client, ['stdio', 'http'])), ...sse.flatMap((client) => rowsOf(client, ['sse'])), ...rowsOf(apps, ['stdio']), ...logins.flatMap((client) => rowsOf(client, ['login'])), ...fleets.flatMap((client) => rowsOf(client, ['fleet'])), ...ourRows];
for (const row of rows) row.file = [row.name, row.transport, row.version].join('-').replace(/[^a-z0-9-]+/g, '_');

rmSync(logs, { recursive: true, force: true });
mkdirSync(logs, { recursive: true });
const print = (...columns) => console.log(columns.map((c, i) => String(c).padEnd([51, 10, 12, 8, 6, 0][i])).join(''));
const picked = rows.filter((row) => words.every((word) => [row.name, row.transport, row.version, row.family, row.command === mcpkit && 'mcpkit'].includes(word)));
if (picked.length === 0) throw new Error(`no row has all of ${words.join(' ')}`);

// Rows mostly wait, so three run at once. They are printed in order.
const results = picked.map(() => Promise.withResolvers());
const next = picked.entries();
const runners = [1, 2, 3].map(async () => {
  for (const [i, row] of next) results[i].resolve(await run(row).catch((e) => [['FAIL', 'the row runs', e.stack]]));
});
print('client', 'transport', 'version', 'family', 'pass', 'FAIL');
let bad = 0;
for (const [i, row] of picked.entries()) {
  const checks = await results[i].promise;
  const failed = checks.filter(([verdict]) => verdict === 'FAIL');
  const passed = checks.filter(([verdict]) => verdict === 'pass');
  print(row.name, row.transport, row.version, row.family, passed.length, failed.length);
  const none = checks.filter(([verdict, name]) => verdict === 'none' && !row.printed.has(name)); // once for each server
  for (const [why, group] of Map.groupBy(none, ([, , why]) => why)) console.log(`  none ${group.map(([, name]) => name).join('; ')}: ${why}`);
  for (const [, name] of none) row.printed.add(name);
  for (const [, text] of checks.filter(([verdict]) => verdict === 'note')) console.log(`  note ${text}`);
  for (const [, name, why] of failed) console.log(`  FAIL ${name}: ${why}`);
  bad += failed.length;
}
await Promise.all(runners);
if (bad) console.log(`${bad} failed; the logs of the servers are in ${logs}`);
process.exitCode = bad ? 1 : 0;
