// Runs every client with every transport and version, and prints a table. run.sh has installed and built what it needs.
//
// usage: node run.mjs BIN [WORD...]
//
// BIN is the folder with the programs server, notes, diary, goclient, login, visitor and mcpgo. With words, only the rows run that have all of them.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { innsOf, legacy, modern } from './inns.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const [bin, ...words] = process.argv.slice(2);
// How long a server may take to start and to end, in milliseconds, and how long a row may take. They end what hangs and do not
// measure speed: machines are busy.
const patience = 300_000;
const rowPatience = 6 * patience;
const logs = join(bin, 'logs');

// The commands of the clients take their task as JSON.
const ts = (sdk) => (task) => [process.execPath, [join(here, 'ts/main.mjs'), JSON.stringify({ ...task, sdk })]];
const inspector = (task) => [process.execPath, [join(here, 'ts/inspector.mjs'), JSON.stringify(task)]];
const goclient = (task) => [join(bin, 'goclient'), [JSON.stringify(task)]];

// sse: the client speaks HTTP+SSE of 2024-11-05 as well, in the legacy version it asks for.
// probes: the client may start one more stdio server to find out what it speaks, and ends that one by a signal.
const clients = [
  { name: '@modelcontextprotocol/sdk', versions: [legacy.at(-1)], command: ts('sdk'), sse: true },
  { name: '@modelcontextprotocol/client', versions: [...legacy, modern], command: ts('client'), probes: (task) => task.version === modern },
  { name: '@modelcontextprotocol/client, auto', versions: [modern], negotiation: 'auto', command: ts('client'), probes: () => true },
  { name: '@modelcontextprotocol/inspector', versions: [legacy.at(-1), modern], command: inspector, probes: (task) => task.version === modern },
  { name: 'go-sdk', versions: [...legacy, modern], command: goclient, sse: true },
];

// The logins: clients of others at our server; our client at the server that the first generation has as an example, which ends by SIGINT,
// and at one of go-sdk.
const diary = (addr) => [join(bin, 'diary'), '-http', addr, '-demo'];
const tsLogin = (sdk) => (task) => [process.execPath, [join(here, 'ts/login.mjs'), JSON.stringify({ ...task, sdk })]];
const example = join(here, 'node_modules/@modelcontextprotocol/sdk/dist/esm/examples/server/simpleStreamableHttp.js');
const ours = (task) => [join(bin, 'login'), [JSON.stringify(task)]];
const logins = [
  { name: '@modelcontextprotocol/sdk', versions: [legacy.at(-1)], command: tsLogin('sdk'), server: diary },
  { name: '@modelcontextprotocol/client', versions: [legacy.at(-1), modern], command: tsLogin('client'), server: diary },
  { name: 'go-sdk', versions: [legacy.at(-1), modern], command: goclient, server: diary },
  { name: 'mcpkit at go-sdk', versions: [modern], command: ours, server: (addr) => [join(bin, 'login'), 'serve', addr, join(bin, 'goclient')] },
  {
    name: 'mcpkit at @modelcontextprotocol/sdk', versions: [legacy.at(-1)], command: ours,
    server: () => [process.execPath, example, '--oauth', '--oauth-strict'],
    how: async (port) => ({ host: 'localhost', env: { MCP_PORT: port, MCP_AUTH_PORT: await freePort() }, signal: 'SIGINT' }),
  },
];

// The visits: our client at servers of others.
const visitor = (task) => [join(bin, 'visitor'), [JSON.stringify(task)]];

const programs = {
  fixture: { stdio: [join(bin, 'server'), '-stdio'], http: (addr) => [join(bin, 'server'), '-addr', addr] },
  notes: { stdio: [join(bin, 'notes')], http: (addr) => [join(bin, 'notes'), '-http', addr] },
};

/** Returns what the rows need: a server a program, and end(), which says how the servers fared. */
async function serversFor(row) {
  if (row.transport === 'login') {
    const { server, end } = await httpServer(join(logs, row.file), row.server, row.how);
    return { servers: server, end };
  }
  if (row.serve) {
    const log = join(logs, row.file);
    const { server, end } = await (row.transport === 'stdio' ? stdioServer(row, log, row.serve(row)) : httpServer(log, (addr) => row.serve(row, addr)));
    return { servers: { inn: row.transport === 'sse' ? overSSE(server) : server }, end: async () => end() };
  }
  const servers = {};
  const ends = [];
  for (const [name, program] of Object.entries(programs)) {
    if (row.transport === 'sse' && name !== 'fixture') continue; // which alone serves it
    const log = join(logs, `${row.file}-${name}`);
    const { server, end } = await (row.transport === 'stdio' ? stdioServer(row, log, program.stdio) : httpServer(log, program.http));
    servers[name] = row.transport === 'sse' ? overSSE(server) : server;
    ends.push(end);
  }
  return { servers, end: async () => (await Promise.all(ends.map((end) => end()))).flat() };
}

const overSSE = (server) => ({ url: server.url.replace(/mcp$/, 'sse'), sse: true });

/** A server that the client starts itself. watch.sh writes down how each one fared. */
function stdioServer(row, log, command) {
  const end = () => {
    const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
    const faults = [];
    const started = lines.filter((l) => l.startsWith('start ')).map((l) => l.split(' ')[1]);
    if (started.length === 0) faults.push('no server was started');
    for (const pid of started) {
      const [, , code, how] = lines.find((l) => l.startsWith(`end ${pid} `))?.split(' ') ?? [];
      if (code === undefined || lives(Number(pid))) faults.push(`server ${pid} was left behind`);
      // A signal that comes when the end of the input has already ended the server leaves 143.
      else if (how === 'signal' && row.probes?.(row) && ['0', '143'].includes(code)) continue;
      else if (code !== '0' || how !== 'input') faults.push(`server ${pid} ended with ${code}, by ${how}`);
    }
    return faults;
  };
  return { server: { command: join(here, 'watch.sh'), args: [log, ...command] }, end };
}

function lives(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** A server of its own for each row, which has to end with 0 when it is told to. */
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
    if (child.exitCode !== null || Date.now() - begun > patience) throw new Error(`${file} does not serve: ${stderr}`);
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
    const late = setTimeout(() => child.kill('SIGKILL'), patience);
    const [code, signal] = await ended;
    clearTimeout(late);
    writeFileSync(`${log}.stderr`, stderr);
    return code === 0 ? [] : [`the server ended with ${code ?? signal}: ${stderr}`];
  };
  return { server: { url }, end };
}

/** Returns a free port below those that the kernel gives to others while the server starts. */
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
  const late = setTimeout(() => child.kill('SIGKILL'), rowPatience);
  const [code, signal] = await once(child, 'close');
  clearTimeout(late);
  const checks = stdout.split('\n').filter(Boolean).map((l) => l.split('\t'));
  const faults = await end();
  if (code !== 0 && !checks.some(([verdict]) => verdict === 'FAIL')) faults.push(`the client ended with ${code ?? signal}: ${stderr}`);
  checks.push(faults.length ? ['FAIL', 'servers end well', faults.join('; ')] : ['pass', 'servers end well']);
  return checks;
}

const rowsOf = (client, transports) =>
  transports.flatMap((transport) => client.versions.map((version) => ({ ...client, transport, version, family: version === modern ? 'modern' : 'legacy' })));
const visits = innsOf(bin).map((inn) => ({ ...inn, command: visitor, said: new Set() })).flatMap(({ json, ...inn }) => [
  ...rowsOf(inn, inn.transports),
  ...(inn.sse ? rowsOf({ ...inn, versions: [legacy.at(-1)] }, ['sse']) : []),
  ...rowsOf({ ...inn, name: `${inn.name}, stateless`, stateless: true, versions: [legacy.at(-1)] }, ['http']),
  ...(json ? rowsOf({ ...inn, name: `${inn.name}, JSON`, json: true, versions: [legacy.at(-1)] }, ['http']) : []),
  ...inn.auto.flatMap(([transport, version]) => rowsOf({ ...inn, name: `${inn.name}, auto`, negotiation: 'auto', versions: [version] }, [transport])),
]);
const sse = clients.filter((client) => client.sse).map((client) => ({ ...client, versions: [legacy.at(-1)] }));
const rows = [...clients.flatMap((client) => rowsOf(client, ['stdio', 'http'])), ...sse.flatMap((client) => rowsOf(client, ['sse'])), ...logins.flatMap((client) => rowsOf(client, ['login'])), ...visits];
for (const row of rows) row.file = [row.name, row.transport, row.version].join('-').replace(/[^a-z0-9-]+/g, '_');

rmSync(logs, { recursive: true, force: true });
mkdirSync(logs, { recursive: true });
const print = (...columns) => console.log(columns.map((c, i) => String(c).padEnd([51, 10, 12, 8, 6, 0][i])).join(''));
const picked = rows.filter((row) => words.every((word) => [row.name, row.transport, row.version, row.family, row.serve && 'visit'].includes(word)));
if (picked.length === 0) throw new Error(`no row has all of ${words.join(' ')}`);

// Most of the time a row waits: a few run at once, and are printed in order.
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
  const none = checks.filter(([verdict, name]) => verdict === 'none' && !row.said.has(name)); // once an inn is enough
  for (const [why, group] of Map.groupBy(none, ([, , why]) => why)) console.log(`  none ${group.map(([, name]) => name).join('; ')}: ${why}`);
  for (const [, name] of none) row.said.add(name);
  for (const [, name, why] of failed) console.log(`  FAIL ${name}: ${why}`);
  bad += failed.length;
}
await Promise.all(runners);
if (bad) console.log(`${bad} failed; what the servers said is in ${logs}`);
process.exitCode = bad ? 1 : 0;
