// Calls the replicas of examples/fleet while they are killed, with one of the TypeScript client SDKs.
// The argument is {sdk, version, fleet} in JSON; fleet is the URL of the proxy without a path. Its
// path /kill is described in examples/fleet/killer.go.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

import { check, end, line } from './report.mjs';

const kills = 6;
const leastCalls = 40;
// Milliseconds: how long a call may take whose response died with its replica, and how long a
// subscription may be deaf when all is quiet.
const afterLoss = 10_000;
const toldLimit = 120_000;
const board = 'board://today';

const task = JSON.parse(process.argv[2]);
const modern = task.version >= '2026-07-28';
const name = `ts-${task.sdk}-${task.version}`;
const { connect } = await import(task.sdk === 'sdk' ? './client-sdk.mjs' : './client-v2.mjs');

// The proxy counts what the client loses by this header field.
const plainFetch = globalThis.fetch;
globalThis.fetch = (url, init) => plainFetch(url, { ...init, headers: { ...Object.fromEntries(new Headers(init?.headers)), 'X-Client': name } });

const shop = async (method, query) => (await plainFetch(`${task.fleet}/kill?${query}`, { method })).json();
const missed = async () => (await shop('GET', `client=${name}`)).missed;

let client;
let orders = 0;
let updated = 0;

/** Returns the n-th call and what it returns; undefined for anything. */
function nextCall(n) {
  const id = `${name}-${++orders}`;
  const all = [
    ['where', {}],
    ['order', { id }, `ordered ${id}`],
    ['describe', { city: 'Oslo' }, 'cold'],
    ['count', {}, '5'],
    ['pin', { note: id }, `pinned ${id}`],
  ];
  if (task.version >= '2025-06-18') all.push(['colour', {}, 'red']);
  return all[n % all.length];
}

/** Makes a call. It returns the error of a call whose response died with its replica, and throws any other error. */
async function call([tool, args, want]) {
  const before = await missed();
  const over = new AbortController();
  let ended = false;
  const watch = (async () => {
    while (!ended) {
      await sleep(50);
      if ((await missed()) === before) continue;
      for (const late = Date.now() + afterLoss; !ended && Date.now() < late; ) await sleep(50);
      over.abort();
    }
  })();
  try {
    const result = await client.call({ name: tool, arguments: args }, { signal: over.signal, timeout: 300_000 });
    assert.notEqual(result.isError, true, JSON.stringify(result));
    if (want !== undefined) assert.equal(result.content[0].text, want);
  } catch (e) {
    if (!(e instanceof assert.AssertionError) && (await missed()) > before) return `${tool}: ${e.message}`;
    throw e;
  } finally {
    ended = true;
    await watch;
  }
  return undefined;
}

await check(`connect at ${task.version}`, async () => {
  client = await connect({ url: `${task.fleet}/mcp` }, { modern, version: task.version, since: (version) => task.version >= version });
  assert.equal(client.version, task.version);
  client.on('elicitation/create', ({ params }) => ({ action: 'accept', content: params.message === 'Which colour?' ? { name: 'red' } : { confirm: true } }));
  client.on('sampling/createMessage', () => ({ role: 'assistant', model: 'm', content: { type: 'text', text: 'cold' } }));
  client.on('notifications/resources/updated', () => updated++);
  if (!modern) await client.client.subscribeResource({ uri: board });
});
if (client) {
  await check(`calls while ${kills} replicas are killed`, async () => {
    let state = await shop('POST', `n=${kills}`);
    const lost = [];
    let made = 0;
    for (; state.left > 0 || made < leastCalls; made++) {
      const gone = await call(nextCall(made));
      if (gone) lost.push(gone);
      state = await shop('GET', '');
    }
    line('note', `${made} calls, ${lost.length} of them died with their replica: ${lost.join('; ')}`);
  });
  await check('tools/list when all is quiet', async () => {
    const names = [];
    let cursor;
    do {
      const page = await client.client.listTools(cursor === undefined ? undefined : { cursor });
      names.push(...page.tools.map((tool) => tool.name));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    // Only the next version of the program has the tool hours.
    assert.deepEqual(names.filter((tool) => tool !== 'hours'), ['colour', 'count', 'deliver', 'describe', 'order', 'pin', 'where']);
  });
  await check('calls when all is quiet', async () => {
    for (let n = 0; n < 6; n++) assert.equal(await call(nextCall(n)), undefined);
  });
  await check('a change of a resource', async () => {
    if (modern) await client.client.listen({ resourceSubscriptions: [board] }); // this client does not open a stream again that broke
    const before = updated;
    for (const late = Date.now() + toldLimit; updated === before; ) {
      assert.ok(Date.now() < late, 'the subscription was not told of a change');
      assert.equal(await call(['pin', { note: 'last' }, 'pinned last']), undefined);
      for (let n = 0; n < 20 && updated === before; n++) await sleep(50);
    }
  });
  await check('close', () => client.close());
}
end();
