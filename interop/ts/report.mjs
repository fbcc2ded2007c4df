// What the clients report to run.mjs: a line a check, tab separated: "pass" or "FAIL", the check, and why.
import assert from 'node:assert/strict';

let failed = false;

const line = (...words) => process.stdout.write(words.map((w) => String(w).replace(/\s+/g, ' ')).join('\t') + '\n');

/** Runs one check. It passes when fn ends within 30 seconds without an error. */
export async function check(name, fn) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('no end within 30 seconds')), 30_000);
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
