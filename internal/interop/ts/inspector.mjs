// Calls the Inspector's CLI, which runs as one process for each call. The argument is {version,
// fixture, notes} in JSON.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { check, end } from './report.mjs';

const { version, fixture, notes } = JSON.parse(process.argv[2]);
const modern = version === '2026-07-28';
const launcher = join(fileURLToPath(import.meta.resolve('@modelcontextprotocol/inspector/package.json')), '../clients/launcher/build/index.js');
// The Inspector keeps its catalog and secrets in the home directory, so it gets a temporary one.
const home = mkdtempSync(join(tmpdir(), 'interop-'));

/** Runs the Inspector and returns its exit code and what it printed as JSON. */
async function inspect(server, method, ...args) {
  const target = server.url ? ['--server-url', server.url, '--transport', 'http'] : [server.command, ...server.args];
  const flags = ['--protocol-era', modern ? 'modern' : 'legacy', '--format', 'json', '--quiet', '--method', method, ...args];
  const child = spawn(process.execPath, [launcher, '--cli', ...target, ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, HOME: home },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (data) => (stdout += data));
  child.stderr.on('data', (data) => (stderr += data));
  const code = await new Promise((resolve) => child.on('close', resolve));
  return { code, stderr, result: stdout ? JSON.parse(stdout).result : undefined };
}

async function result(...args) {
  const { code, stderr, result } = await inspect(...args);
  assert.equal(code, 0, stderr);
  return result;
}

const checks = [
  [`initialize at ${version}`, async () => {
    const { serverInfo, protocolVersion } = await result(fixture, 'initialize');
    assert.equal(protocolVersion, version);
    assert.equal(serverInfo.name, 'mcpkit-conformance');
  }],
  ['tools/list, schemas that every client can use', async () => {
    const { tools } = await result(fixture, 'tools/list', '--strict');
    assert.ok(tools.length > 25, `${tools.length} tools`);
    const names = (await result(notes, 'tools/list', '--strict')).tools.map((t) => t.name);
    for (const name of ['add', 'delete', 'search']) assert.ok(names.includes(name), `${name} in ${names}`);
  }],
  ['tools/call', async () => {
    const { content } = await result(fixture, 'tools/call', '--tool-name', 'test_tool_with_progress');
    assert.equal(content[0].text, 'Tool with progress executed successfully');
  }],
  ['tools/call with structured output', async () => {
    const { structuredContent } = await result(notes, 'tools/call', '--tool-name', 'search', '--tool-arg', 'query=first', 'limit=1');
    const hits = [{ id: 'welcome', text: '# Welcome\n\nThis is your first note.' }];
    assert.deepEqual(structuredContent, modern ? hits : { result: hits });
  }],
  ['tools/call with bad arguments', async () => {
    const { code, result } = await inspect(notes, 'tools/call', '--tool-name', 'search', '--tool-args-json', '{"query":"x"}');
    assert.notEqual(code, 0);
    assert.equal(result.isError, true);
    assert.match(result.content[0].text, /\/query: got "x", want a string of at least 2 characters/);
  }],
  ['resources/list, templates/list', async () => {
    assert.equal((await result(fixture, 'resources/list')).resources.length, 4);
    assert.equal((await result(notes, 'resources/templates/list')).resourceTemplates[0].uriTemplate, 'note://{id}');
  }],
  ['skills/list, skills/get', async () => {
    const { skills } = await result(fixture, 'skills/list');
    assert.deepEqual(skills.map((s) => s.uri), ['skill://pdf-processing/SKILL.md']);
    const { skill } = await result(fixture, 'skills/get', '--uri', skills[0].uri);
    assert.equal(skill.frontmatter.name, 'pdf-processing');
  }],
  ['resources/read', async () => {
    assert.equal((await result(notes, 'resources/read', '--uri', 'note://welcome')).contents[0].text, '# Welcome\n\nThis is your first note.');
  }],
  ['prompts/list, prompts/get', async () => {
    assert.deepEqual((await result(notes, 'prompts/list')).prompts.map((p) => p.name), ['summarize']);
    const { messages } = await result(notes, 'prompts/get', '--prompt-name', 'summarize', '--prompt-args', 'id=welcome', 'style=short');
    assert.match(messages[0].content.text, /^Summarize this note in a short style:/);
  }],
];
if (!modern) checks.push(['logging/setLevel', () => result(fixture, 'logging/setLevel', '--log-level', 'debug')]);

// Two run at once: each is a process that takes half a second to start.
const next = checks[Symbol.iterator]();
await Promise.all([1, 2].map(async () => {
  for (const [name, fn] of next) await check(name, fn);
}));
rmSync(home, { recursive: true, force: true });
end();
