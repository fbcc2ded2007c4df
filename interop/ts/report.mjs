// What the clients report to run.mjs: a line a check, tab separated: "pass" or "FAIL", the check, and why.
import assert from 'node:assert/strict';

let failed = false;

const line = (...words) => process.stdout.write(words.map((w) => String(w).replace(/\s+/g, ' ')).join('\t') + '\n');

// How long a check may take, in seconds. It is the end of what hangs and no measure of speed: machines are busy.
const patience = 300;

/** Runs one check. It passes when fn ends without an error, in time. */
export async function check(name, fn) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end within ${patience} seconds`)), patience * 1000);
  });
  try {
    await Promise.race([fn(), late]);
    line('pass', name);
  } catch (e) {
    failed = true;
    line('FAIL', name, e instanceof assert.AssertionError ? e.message : (e.stack ?? e));
  } finally {
    clearTimeout(timer);
  }
}

/** Ends the process: with 1 when a check failed. */
export function end() {
  process.exitCode = failed ? 1 : 0;
}

/** A value that comes later. */
export function later() {
  const { promise, resolve, reject } = Promise.withResolvers();
  return { promise, resolve, reject };
}
