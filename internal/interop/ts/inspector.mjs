// Calls our servers with the Inspector's CLI, which runs as one process for each call. The argument
// is {version, server, notes} in JSON.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { check } from './check.mjs';

const { version, server, notes } = JSON.parse(process.argv[2]);
const modern = version === '2026-07-28';
const launcher = join(fileURLToPath(import.meta.resolve('@modelcontextprotocol/inspector/package.json')), '../clients/launcher/build/index.js');
// The Inspector keeps its catalog and secrets in the home directory, so it gets a temporary one.
const home = mkdtempSync(join(tmpdir(), 'interop-'));

/** Runs the Inspector and returns its exit code and what it printed as JSON. */
function inspect({ url, command, args = [] }, method, ...rest) {
  const target = url ? ['--server-url', url, '--transport', 'http'] : [command, ...args];
  const flags = ['--protocol-era', modern ? 'modern' : 'legacy', '--format', 'json', '--quiet', '--method', method, ...rest];
  return new Promise((resolve) => {
    execFile(process.execPath, [launcher, '--cli', ...target, ...flags], { env: { PATH: process.env.PATH, HOME: home } }, (err, stdout, stderr) => {
      resolve({ code: err?.code ?? 0, stderr, result: stdout ? JSON.parse(stdout).result : undefined });
    });
  });
}

async function result(...args) {
  const { code, stderr, result } = await inspect(...args);
  assert.equal(code, 0, stderr);
  return result;
}

await check(`initialize at ${version}`, async () => {
  const { serverInfo, protocolVersion } = await result(server, 'initialize');
  assert.equal(protocolVersion, version);
  assert.equal(serverInfo.name, 'mcpkit-conformance');
});
await check('tools/list, schemas that every client can use', async () => {
  for (const one of [server, notes]) assert.ok((await result(one, 'tools/list', '--strict')).tools.length > 2);
});
await check('tools/call with structured output', async () => {
  const { structuredContent } = await result(notes, 'tools/call', '--tool-name', 'search', '--tool-arg', 'query=first', 'limit=1');
  const hits = [{ id: 'welcome', text: '# Welcome\n\nThis is your first note.' }];
  assert.deepEqual(structuredContent, modern ? hits : { result: hits });
});
await check('tools/call with bad arguments', async () => {
  const { code, result } = await inspect(notes, 'tools/call', '--tool-name', 'search', '--tool-args-json', '{"query":"x"}');
  assert.notEqual(code, 0);
  assert.match(result.content[0].text, /\/query: /);
});
await check('skills/list', async () => {
  const { skills } = await result(server, 'skills/list');
  assert.deepEqual(skills.map((s) => s.uri), ['skill://pdf-processing/SKILL.md']);
});
await check('resources/read', async () => {
  assert.equal((await result(notes, 'resources/read', '--uri', 'note://welcome')).contents[0].text, '# Welcome\n\nThis is your first note.');
});
await check('prompts/get', async () => {
  const { messages } = await result(notes, 'prompts/get', '--prompt-name', 'summarize', '--prompt-args', 'id=welcome', 'style=short');
  assert.match(messages[0].content.text, /^Summarize this note in a short style:/);
});
rmSync(home, { recursive: true, force: true });
