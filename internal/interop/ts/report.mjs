// Reports checks to run.mjs, each as a line of tab-separated columns: "pass" or "FAIL", the check,
// and the reason; or "note" and a text.
import assert from 'node:assert/strict';

let failed = false;

export const line = (...words) => process.stdout.write(words.map((w) => String(w).replace(/\s+/g, ' ')).join('\t') + '\n');

// Seconds after which a check that hangs fails. It is long because the machine may be busy.
const checkTimeout = 300;

/** Runs one check. It passes if fn returns without an error, in time. */
export async function check(name, fn) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`timed out after ${checkTimeout} seconds`)), checkTimeout * 1000);
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

/** Sets the exit code of the process: 1 if a check failed, else 0. */
export function end() {
  process.exitCode = failed ? 1 : 0;
}

/** Returns a promise with its resolve and reject functions. */
export function later() {
  const { promise, resolve, reject } = Promise.withResolvers();
  return { promise, resolve, reject };
}
