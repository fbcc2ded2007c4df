// Tests of judge.mjs: run with `node --test conformance/`.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

const judge = path.join(import.meta.dirname, 'judge.mjs');
const ok = { id: 'a', status: 'SUCCESS' };
const skipped = { id: 'b', status: 'SKIPPED' };
const shape = { id: 'wire-schema-valid', status: 'SUCCESS' };
const failed = { id: 'c', status: 'FAILURE', errorMessage: 'no tools\nstack' };
const warned = { id: 'd', status: 'WARNING', description: 'slow' };

const cases = [
  { name: 'all pass', scenarios: { one: [ok, skipped], two: [shape, ok] }, out: ['server-x: 2/2 passed, 0 failed'] },
  { name: 'a failure', scenarios: { one: [ok, failed] }, status: 1, out: ['  FAIL one: FAILURE c: no tools', 'server-x: 0/1 passed, 1 failed — FAIL'] },
  { name: 'a warning', scenarios: { one: [ok, warned] }, out: ['  FAIL one: WARNING d: slow', 'server-x: 0/1 passed, 1 failed — FAIL'] },
  { name: 'nothing tested', scenarios: { one: [skipped, shape] }, out: ['  FAIL one: nothing was tested', 'server-x: 0/1 passed, 1 failed — FAIL'] },
  { name: 'no checks', scenarios: { one: [] }, out: ['  FAIL one: nothing was tested', 'server-x: 0/1 passed, 1 failed — FAIL'] },
  { name: 'a scenario threw', scenarios: { one: [ok] }, want: 2, selected: 2, out: ['  FAIL 1 of 2 scenarios have results; the others threw an error, see LOG', 'server-x: 1/2 passed, 0 failed — FAIL'] },
  { name: 'the suite selects fewer', scenarios: { one: [ok] }, selected: 7, out: ['  FAIL the suite selected 7 scenarios instead of 1', 'server-x: 1/1 passed, 0 failed — FAIL'] },
  { name: 'the suite fails for no reason', scenarios: { one: [ok] }, status: 3, out: ['  FAIL the suite exited with 3, see LOG', 'server-x: 1/1 passed, 0 failed — FAIL'] },
  { name: 'a known failure', scenarios: { one: [failed], two: [ok] }, status: 1, baseline: 'server-x one # why', out: ['  expected: one: FAILURE c: no tools', 'server-x: 1/2 passed, 1 failed'] },
  { name: 'a known failure passes', scenarios: { one: [ok] }, baseline: 'server-x one # why', out: ['  FAIL one passes: remove it from baseline.txt', 'server-x: 0/1 passed, 0 failed — FAIL'] },
  { name: 'a known failure of another leg', scenarios: { one: [failed] }, baseline: 'server-y one # why', status: 1, out: ['  FAIL one: FAILURE c: no tools', 'server-x: 0/1 passed, 1 failed — FAIL'] },
  { name: 'the baseline names nothing', scenarios: { one: [ok] }, baseline: 'server-x none', out: ['  FAIL baseline.txt lists none, which was not run', 'server-x: 1/1 passed, 0 failed — FAIL'] },
  { name: 'an authorization server fails', kind: 'authorization', folder: 'authorization-server', scenarios: { 'authorization-server-one': [failed] }, status: 1, baseline: 'authorization-x authorization-server-one', out: ['  expected: authorization-server-one: FAILURE c: no tools', 'authorization-x: 0/1 passed, 1 failed'] },
  { name: 'the baseline is unreadable', scenarios: { one: [ok] }, baseline: 'one', out: ['  FAIL baseline.txt: "one" is not LEG SCENARIO', 'server-x: 1/1 passed, 0 failed — FAIL'] },
];

for (const c of cases) {
  test(c.name, () => {
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'judge-'));
    try {
      const n = Object.keys(c.scenarios).length;
      for (const [name, checks] of Object.entries(c.scenarios)) {
        const at = path.join(dir, 'checks', `${c.folder ?? 'server'}-${name}-2026-01-02T03-04-05-678Z`);
        fs.mkdirSync(at, { recursive: true });
        fs.writeFileSync(path.join(at, 'checks.json'), JSON.stringify(checks));
      }
      const log = path.join(dir, 'suite.log');
      const baseline = path.join(dir, 'baseline.txt');
      fs.writeFileSync(log, `Running all suite (${c.selected ?? n} scenarios) against`);
      fs.writeFileSync(baseline, `# comment\n\n${c.baseline ?? ''}\n`);
      const args = { leg: `${c.kind ?? 'server'}-x`, checks: path.join(dir, 'checks'), log, status: `${c.status ?? 0}`, scenarios: `${c.want ?? n}`, baseline };
      const run = spawnSync(process.execPath, [judge, ...Object.entries(args).flatMap(([k, v]) => [`--${k}`, v])], { encoding: 'utf8' });
      assert.deepEqual(run.stdout.replaceAll(log, 'LOG').trimEnd().split('\n'), c.out);
      assert.equal(run.status, c.out.at(-1).endsWith('FAIL') ? 1 : 0);
      assert.equal(run.stderr, '');
    } finally {
      fs.rmSync(dir, { recursive: true });
    }
  });
}
