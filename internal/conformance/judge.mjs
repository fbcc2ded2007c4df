// Checks the results of one run of the conformance suite more strictly than the suite itself.
//
// The suite passes scenarios with warnings, scenarios whose checks were all skipped, and scenarios
// without checks. Here each of these is a failure, unless baseline.txt lists the scenario. A listed
// scenario that passes is a failure, too.
//
// usage: judge.mjs --leg LEG --checks DIR --log FILE --status N --scenarios N --baseline FILE
import fs from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

const string = { type: 'string' };
const { values: args } = parseArgs({
  options: { leg: string, checks: string, log: string, status: string, scenarios: string, baseline: string },
});

const faults = [];

const listed = readBaseline(args.baseline, args.leg);
const results = readResults(args.checks, args.leg.split('-')[0]);
const verdicts = new Map([...results].sort().map(([name, checks]) => [name, judge(checks)]));

let passed = 0;
for (const [name, complaints] of verdicts) {
  const expected = listed.delete(name);
  if (complaints.length === 0) {
    if (expected) faults.push(`${name} passes: remove it from baseline.txt`);
    else passed++;
    continue;
  }
  for (const complaint of complaints) {
    if (expected) console.log(`  expected: ${name}: ${complaint}`);
    else faults.push(`${name}: ${complaint}`);
  }
}
for (const name of listed) faults.push(`baseline.txt lists ${name}, which was not run`);

const selected = Number(/Running .*\((\d+) scenarios\)/.exec(fs.readFileSync(args.log, 'utf8'))?.[1] ?? NaN);
const want = Number(args.scenarios);
if (selected !== want) faults.push(`the suite selected ${selected} scenarios instead of ${want}`);
if (results.size !== want) faults.push(`${results.size} of ${want} scenarios have results; the others threw an error, see ${args.log}`);

const failures = [...verdicts.values()].filter((complaints) => complaints.length > 0).length;
if (Number(args.status) !== 0 && failures === 0) faults.push(`the suite exited with ${args.status}, see ${args.log}`);

for (const fault of faults) console.log(`  FAIL ${fault}`);
console.log(`${args.leg}: ${passed}/${want} passed, ${failures} failed${faults.length > 0 ? ' — FAIL' : ''}`);
process.exit(faults.length > 0 ? 1 : 0);

// judge returns the faults of a scenario.
function judge(checks) {
  const complaints = checks
    .filter((c) => c.status === 'FAILURE' || c.status === 'WARNING')
    .map((c) => `${c.status} ${c.id}: ${(c.errorMessage ?? c.description ?? '').split('\n')[0].slice(0, 300)}`);
  // Every scenario also checks its messages against the schema. That alone tests no behaviour.
  const tested = checks.some((c) => c.status === 'SUCCESS' && c.id !== 'wire-schema-valid');
  if (complaints.length === 0 && !tested) complaints.push('nothing was tested');
  return complaints;
}

// readResults returns the checks of each scenario.
function readResults(dir, kind) {
  const found = new Map();
  const files = fs.existsSync(dir) ? fs.readdirSync(dir, { recursive: true }) : [];
  for (const file of files.filter((f) => path.basename(f) === 'checks.json')) {
    let name = path.dirname(file).replace(/-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(-\d+)?Z$/, '');
    if (kind === 'server') name = name.replace(/^server-/, '');
    if (kind === 'authorization') name = name.replace(/^authorization-server-/, '');
    found.set(name, JSON.parse(fs.readFileSync(path.join(dir, file), 'utf8')));
  }
  return found;
}

// readBaseline returns the scenarios that baseline.txt lists for the leg.
function readBaseline(file, leg) {
  const names = new Set();
  for (const line of fs.readFileSync(file, 'utf8').split('\n')) {
    const words = line.replace(/#.*/, '').split(/\s+/).filter(Boolean);
    if (words.length === 0) continue;
    if (words.length !== 2) faults.push(`baseline.txt: ${JSON.stringify(line)} is not LEG SCENARIO`);
    else if (words[0] === leg) names.add(words[1]);
  }
  return names;
}
