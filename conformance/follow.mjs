// Is the user whom the suite asks to open a page: copies what the suite prints, and goes to the first line that is a URL of the
// issuer, as a browser does, by way of the redirect to the suite's own address.
//
// usage: conformance authorization ... | follow.mjs ISSUER
import readline from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';

const [issuer] = process.argv.slice(2);
let gone = false;
for await (const line of readline.createInterface({ input: process.stdin })) {
  console.log(line);
  if (gone || !line.startsWith(`${issuer}/`)) continue;
  gone = true;
  follow(line);
}

async function follow(page) {
  const fault = await visit(page);
  if (!fault) return;
  // The suite would wait for minutes.
  const back = new URL(new URL(page).searchParams.get('redirect_uri'));
  back.search = new URLSearchParams({ error: 'not_followed', error_description: fault });
  await visit(back);
}

// visit returns what went wrong. The suite may print the page before it listens.
async function visit(page) {
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
