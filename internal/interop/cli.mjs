// Runs the command line of mcpkit against servers of other SDKs, over stdio: what a server says must be shown or saved.
//
// usage: node cli.mjs BIN
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const bin = process.argv[2];
const here = dirname(fileURLToPath(import.meta.url));
const quote = (words) => words.map((w) => (/^[\w./:-]+$/.test(w) ? w : `'${w}'`)).join(' ');
const servers = {
  'go-sdk': quote([join(bin, 'gosdk'), JSON.stringify({ Serve: 'stdio' })]),
  'mcp-go': quote([join(bin, 'mcpgo'), 'stdio']),
  '@modelcontextprotocol/sdk': quote([process.execPath, join(here, 'ts/serve.mjs'), JSON.stringify({ sdk: 'sdk', transport: 'stdio' })]),
  '@modelcontextprotocol/server': quote([process.execPath, join(here, 'ts/serve.mjs'), JSON.stringify({ sdk: 'server', transport: 'stdio' })]),
};

const files = (folder) => Object.fromEntries(readdirSync(folder).map((name) => [name.split('.').at(-1), readFileSync(join(folder, name), 'utf8')]));

// Each job: the arguments around SERVER, the exit code, what the output contains, and what is saved by extension.
const jobs = [
  { args: (s) => ['inspect', s], shows: ['interop', 'Ask at the desk.', 'add', 'Adds two numbers.', 'integer'] },
  { args: (s) => ['list', s], shows: ['add', 'content', 'fail', 'test://menu', 'test://photo', 'test://rooms/{number}', 'greet'] },
  { args: (s) => ['call', s, 'add', 'a=1', 'b=2'], shows: ['3'] },
  { args: (s) => ['call', s, 'add', 'a=1'], code: 1, shows: ['b'] },
  { args: (s, dir) => ['call', '--save', dir, s, 'content'], shows: ['a text', 'test://menu', 'Soup', 'image/png', 'audio/wav'], saves: { png: 'image', wav: 'audio' } },
  { args: (s) => ['call', s, 'fail'], code: 1, shows: ['the kitchen is closed'] },
  { args: (s) => ['call', s, 'ad'], code: [1, 4], shows: ['did you mean "add"'] },
  { args: (s) => ['read', s, 'test://menu'], shows: ['Soup'] },
  { args: (s, dir) => ['read', '--save', dir, s, 'test://photo'], shows: ['image/png'], saves: { png: '\ufffdPNG' } },
  { args: (s) => ['read', s, 'test://rooms/10'], shows: ['10'] },
  { args: (s) => ['prompt', s, 'greet', 'name=Ann', 'style=formal'], shows: ['Greet Ann', 'formal'] },
  { args: (s) => ['call', '--answer', 'name=Ann', s, 'ask'], shows: ['Ann'] },
  { args: (s) => ['ping', s], shows: [] },
];

let failed = 0;
for (const [name, server] of Object.entries(servers)) {
  for (const { args, code = 0, shows, saves = {} } of jobs) {
    const dir = mkdtempSync(join(tmpdir(), 'mcpkit-cli-'));
    const command = args(server, dir);
    const { status, stdout, stderr } = spawnSync(join(bin, 'mcpkit'), ['--output', 'text', ...command].filter(Boolean), { encoding: 'utf8', timeout: 120_000 });
    const output = stdout + stderr;
    const missing = shows.filter((text) => !output.includes(text));
    const saved = files(dir);
    const lost = Object.entries(saves).filter(([ext, text]) => saved[ext] !== text).map(([ext]) => ext);
    rmSync(dir, { recursive: true });
    if (![code].flat().includes(status) || missing.length || lost.length) {
      failed++;
      console.error(`interop: command line at ${name}: mcpkit ${command.filter((w) => w !== server).join(' ')}: exit code ${status}, not shown: ${JSON.stringify(missing)}, not saved: ${lost}\n${output}`);
    }
  }
}
console.log(`interop: command line: ${Object.keys(servers).length * jobs.length - failed} of ${Object.keys(servers).length * jobs.length} commands at servers of other SDKs`);
process.exit(failed ? 1 : 0);
