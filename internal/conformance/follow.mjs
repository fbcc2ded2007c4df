// Opens the login page that the suite prints, in place of the user. It copies the output of the
// suite, opens the first URL of the issuer in it, and follows the redirect to the suite.
//
// usage: conformance authorization ... | follow.mjs ISSUER
import readline from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';

const [issuer] = process.argv.slice(2);
let followed = false;
for await (const line of readline.createInterface({ input: process.stdin })) {
  console.log(line);
  if (followed || !line.startsWith(`${issuer}/`)) continue;
  followed = true;
  follow(line);
}

async function follow(page) {
  const fault = await open(page);
  if (!fault) return;
  // Report the error, since the suite would wait for minutes.
  const back = new URL(new URL(page).searchParams.get('redirect_uri'));
  back.search = new URLSearchParams({ error: 'not_followed', error_description: fault });
  await open(back);
}

// open returns the error, if any. It retries, because the suite may print the page before it
// listens.
async function open(page) {
  let fault;
  for (let tries = 0; tries < 3000; tries++) {
    try {
      const response = await fetch(page, { signal: AbortSignal.timeout(300_000) });
      const text = await response.text();
      return response.ok ? undefined : `${response.status} ${text.slice(0, 200)}`;
    } catch (error) {
      fault = `${error} ${error.cause ?? ''}`;
      await wait(100);
    }
  }
  return fault;
}
