// The features of the TypeScript test servers, which visitor in visit_test.go lists. The
// handlers are the same for both SDKs; the kits in server-sdk.mjs and server-v2.mjs register them.
import { z } from 'zod';

const text = (value) => ({ content: [{ type: 'text', text: value }] });
const contents = (uri, body) => ({ contents: [{ uri, ...body }] });
const messages = (value) => ({
  messages: [
    { role: 'user', content: { type: 'text', text: value } },
    { role: 'assistant', content: { type: 'text', text: 'I do.' } },
  ],
});

// Handlers return questions for the client. They are called again with its answers under the same
// keys, and with the state.
const form = (field, message) => ({
  method: 'elicitation/create',
  params: {
    mode: 'form',
    message,
    requestedSchema: { type: 'object', properties: { [field]: { type: 'string' }, room: { type: 'string', default: 'blue' } }, required: [field] },
  },
});
const page = { mode: 'url', message: 'Please pay.', url: 'https://pay.example.com/bill?n=1' };
const sampling = {
  method: 'sampling/createMessage',
  params: { maxTokens: 100, systemPrompt: 'Be short.', messages: [{ role: 'user', content: { type: 'text', text: 'a word' } }] },
};
const rootsList = { method: 'roots/list', params: {} };

const sampledText = ({ content }) => [content].flat()[0].text;
const rootsText = ({ roots }) => roots.map((root) => `${root.name} at ${root.uri}`).join();

/** Returns an event: each wait() resolves after one signal(). */
function event() {
  let signals = 0;
  const waiting = [];
  return {
    signal: () => (waiting.length ? waiting.shift()() : signals++),
    wait: () => (signals > 0 ? (signals--, Promise.resolve()) : new Promise((resolve) => waiting.push(resolve))),
  };
}

// State of all servers of the process, which serves one client at a time.
const waitCancelled = event(); // a call of wait was cancelled
export const rootsChanged = event(); // the roots of the client changed
export const extras = []; // the added items, as {list, name}
let reads = 0; // how often the counter was read
let owed = 0; // how often pay_first was called

export const info = { name: 'interop', version: '1.0.0' };
export const instructions = 'Ask at the desk.';

/** Registers all features with the functions of a kit: tool, resource, template and prompt. */
export function register(kit) {
  tools(kit);
  questions(kit);
  resources(kit);
  prompts(kit);
  for (const extra of extras) addExtra(kit, extra);
}

export function addExtra(kit, { list, name }) {
  if (list === 'tools') kit.tool(name, {}, () => text('here'));
  if (list === 'prompts') kit.prompt(name, {}, () => messages('extra'));
  if (list === 'resources') kit.resource(name, `test://${name}`, {}, (uri) => contents(uri, { text: 'extra' }));
}

function tools(kit) {
  kit.tool(
    'add',
    {
      title: 'Add up',
      description: 'Adds two numbers.',
      annotations: { readOnlyHint: true },
      inputSchema: z.object({ a: z.number().int(), b: z.number().int() }),
      outputSchema: z.object({ sum: z.number().int() }),
    },
    ({ a, b }) => ({ ...text(JSON.stringify({ sum: a + b })), structuredContent: { sum: a + b } }),
  );
  if (kit.arrays) kit.tool('rooms', { outputSchema: z.array(z.number().int()) }, () => ({ ...text('[10,11]'), structuredContent: [10, 11] }));
  const region = z.string().meta({ 'x-mcp-header': 'Region' });
  kit.tool('locate', { inputSchema: z.object({ region }) }, (args) => text(`Region: ${args.region}`));
  const base64 = (s) => Buffer.from(s).toString('base64');
  kit.tool('content', {}, () => ({
    content: [
      { type: 'text', text: 'a text' },
      { type: 'image', mimeType: 'image/png', data: base64('image') },
      { type: 'audio', mimeType: 'audio/wav', data: base64('audio') },
      { type: 'resource_link', uri: 'test://menu', name: 'menu' },
      { type: 'resource', resource: { uri: 'test://menu', mimeType: 'text/plain', text: 'Soup' } },
    ],
  }));
  kit.tool('fail', {}, () => {
    throw new Error('the kitchen is closed');
  });
  kit.tool('caller_meta', {}, (_, { meta }) => text(meta['example.com/caller']));
  kit.tool('work', {}, async (_, call) => {
    for (const step of [1, 2, 3]) await call.progress({ progress: step, total: 3, message: `step ${step}` });
    for (const level of ['debug', 'info']) await call.log(level, `told at ${level}`);
    return text('done');
  });
  kit.tool('wait', {}, async (_, call) => {
    await call.progress({ progress: 1 });
    if (!call.signal.aborted) await new Promise((resolve) => call.signal.addEventListener('abort', resolve));
    waitCancelled.signal();
    return text('cancelled');
  });
  kit.tool('cancelled', {}, async () => {
    await waitCancelled.wait();
    return text('cancelled');
  });
  kit.tool('roots_changed', {}, async () => {
    await rootsChanged.wait();
    return text('roots changed');
  });
  kit.tool('resume', {}, (_, call) => {
    call.closeStream?.();
    return text(call.closeStream ? 'still here' : 'there is no stream');
  });
  kit.tool('update_resource', {}, async (_, call) => {
    await call.updated('test://guestbook');
    return text('touched');
  });
  kit.tool('change', { inputSchema: z.object({ list: z.string() }) }, async ({ list }, call) => {
    const extra = { list, name: `extra${extras.length + 1}` };
    extras.push(extra);
    await call.added(extra);
    return text(extra.name);
  });
}

function questions(kit) {
  kit.tool('ask', {}, (_, { answers }) => {
    if (!answers.name) return { questions: { name: form('name', 'Who are you?') } };
    const { action, content } = answers.name;
    return text(action === 'accept' ? `Hello, ${content.name} in ${content.room}!` : action);
  });
  kit.tool('register', {}, (_, { answers, state }) => {
    if (answers.colour) return text(`${state} likes ${answers.colour.content.colour}`);
    if (!answers.name) return { questions: { name: form('name', 'Who are you?') } };
    const { name } = answers.name.content;
    return { questions: { colour: form('colour', `Which colour, ${name}?`) }, state: name };
  });
  kit.tool('pay', {}, (_, { answers }) => {
    if (!answers.page) return { questions: { page: { method: 'elicitation/create', params: page } } };
    return text(answers.page.action);
  });
  // Fails until the bill is paid. The server reports the payment soon after the second call
  // (2025-11-25 only).
  kit.tool('pay_first', {}, (_, call) => {
    if (++owed > 2) return text('paid');
    const elicitationId = 'bill-1';
    if (owed === 2) setTimeout(call.complete(elicitationId), 50);
    throw new kit.UrlElicitationRequiredError([{ ...page, elicitationId }]);
  });
  kit.tool('sample', {}, (_, { answers }) => (answers.thought ? text(sampledText(answers.thought)) : { questions: { thought: sampling } }));
  kit.tool('list_roots', {}, (_, { answers }) => (answers.roots ? text(rootsText(answers.roots)) : { questions: { roots: rootsList } }));
  kit.tool('ask_several', {}, (_, { answers: { name, thought, roots } }) => {
    if (!name) return { questions: { name: form('name', 'Who are you?'), thought: sampling, roots: rootsList } };
    return text(`${name.content.name}, ${sampledText(thought)}, ${rootsText(roots)}`);
  });
}

function resources(kit) {
  const plain = { mimeType: 'text/plain' };
  kit.resource('menu', 'test://menu', plain, (uri) => contents(uri, { ...plain, text: 'Soup' }));
  const image = { mimeType: 'image/png' };
  kit.resource('photo', 'test://photo', image, (uri) => contents(uri, { ...image, blob: Buffer.from([0x89, 0x50, 0x4e, 0x47]).toString('base64') }));
  kit.resource('guestbook', 'test://guestbook', {}, (uri) => contents(uri, { text: 'Ann was here.' }));
  kit.resource('counter', 'test://counter', { cacheHint: { ttlMs: 60_000, cacheScope: 'public' } }, (uri) => contents(uri, { text: String(++reads) }));
  kit.resource('safe', 'test://safe', {}, (uri, { answers }) =>
    answers.code ? contents(uri, { text: `opened by ${answers.code.content.code}` }) : { questions: { code: form('code', 'Which code?') } },
  );
  const starting = (values) => (value) => values.filter((v) => v.startsWith(value));
  const json = { mimeType: 'application/json' };
  kit.template('room', 'test://rooms/{number}', { number: starting(['10', '11', '20']) }, json, (uri, { number }) => contents(uri, { ...json, text: JSON.stringify({ number }) }));
}

function prompts(kit) {
  const style = (value, context) => (context?.arguments?.name === 'Ann' ? ['formal'] : ['formal', 'friendly', 'short']).filter((v) => v.startsWith(value));
  const argsSchema = z.object({ name: z.string(), style: kit.completed(z.string(), style) });
  kit.prompt('greet', { description: 'Greets somebody.', argsSchema }, (args) => messages(`Greet ${args.name}, ${args.style}`));
  kit.prompt('welcome', {}, (_, { answers }) => (answers.name ? messages(`Welcome, ${answers.name.content.name}`) : { questions: { name: form('name', 'Who are you?') } }));
  for (const name of ['breakfast', 'lunch']) kit.prompt(name, {}, () => messages(name));
}

/** Stores the events of streams, so that clients can resume them. */
export class Events {
  #events = [];

  async storeEvent(stream, message) {
    this.#events.push({ stream, message });
    return String(this.#events.length);
  }

  async getStreamIdForEventId(id) {
    return this.#events[id - 1]?.stream;
  }

  async replayEventsAfter(id, { send }) {
    const { stream } = this.#events[id - 1];
    for (const [i, event] of this.#events.entries()) if (i >= id && event.stream === stream && Object.keys(event.message).length) await send(String(i + 1), event.message);
    return stream;
  }
}

/** Returns the body of a request. */
export async function bodyOf(req) {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  return chunks.length ? JSON.parse(Buffer.concat(chunks)) : undefined;
}
