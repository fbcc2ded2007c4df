// An inn, which interop/visitor visits; its doc comment says what an inn offers.
// What the handlers do is here. The kit of each SDK says how a server gets them: inn-sdk.mjs and inn-server.mjs.
import { z } from 'zod';

const text = (value) => ({ content: [{ type: 'text', text: value }] });
const contents = (uri, body) => ({ contents: [{ uri, ...body }] });
const messages = (value) => ({
  messages: [
    { role: 'user', content: { type: 'text', text: value } },
    { role: 'assistant', content: { type: 'text', text: 'I do.' } },
  ],
});

// Handlers return questions for the client, and are called again with its answers by the same keys. State comes back, too.
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

const said = ({ content }) => [content].flat()[0].text;
const places = ({ roots }) => roots.map((root) => `${root.name} at ${root.uri}`).join();

/** Something that happens now and then, and is waited for. */
function bell() {
  let rings = 0;
  const waiting = [];
  return {
    ring: () => (waiting.length ? waiting.shift()() : rings++),
    wait: () => (rings > 0 ? (rings--, Promise.resolve()) : new Promise((resolve) => waiting.push(resolve))),
  };
}

// What all servers of the process share: one visitor comes at a time.
const left = bell(); // a call of wait was cancelled
export const moved = bell(); // the roots of the client changed
export const extras = []; // what was added, as {list, name}
let rung = 0; // how often the bell was read
let owed = 0; // how often pay_first was called

export const baked = text('baked'); // what the tool bake returns, by a task
export const info = { name: 'inn', version: '1.0.0' };
export const instructions = 'Ask at the desk.';

/** Registers everything by the functions of a kit: tool, resource, template and prompt. */
export function furnish(kit) {
  tools(kit);
  questions(kit);
  resources(kit);
  prompts(kit);
  for (const extra of extras) addExtra(kit, extra);
}

export function addExtra(kit, { list, name }) {
  if (list === 'tools') kit.tool(name, {}, () => text('here'));
  if (list === 'prompts') kit.prompt(name, {}, () => messages('extra'));
  if (list === 'resources') kit.resource(name, `inn://${name}`, {}, (uri) => contents(uri, { text: 'extra' }));
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
      { type: 'resource_link', uri: 'inn://menu', name: 'menu' },
      { type: 'resource', resource: { uri: 'inn://menu', mimeType: 'text/plain', text: 'Soup' } },
    ],
  }));
  kit.tool('fail', {}, () => {
    throw new Error('the kitchen is closed');
  });
  kit.tool('whisper', {}, (_, { meta }) => text(meta['example.com/guest']));
  kit.tool('work', {}, async (_, visit) => {
    for (const step of [1, 2, 3]) await visit.progress({ progress: step, total: 3, message: `step ${step}` });
    for (const level of ['debug', 'info']) await visit.log(level, `told at ${level}`);
    return text('done');
  });
  kit.tool('wait', {}, async (_, visit) => {
    await visit.progress({ progress: 1 });
    if (!visit.signal.aborted) await new Promise((resolve) => visit.signal.addEventListener('abort', resolve));
    left.ring();
    return text('cancelled');
  });
  kit.tool('cancelled', {}, async () => {
    await left.wait();
    return text('cancelled');
  });
  kit.tool('moved', {}, async () => {
    await moved.wait();
    return text('moved');
  });
  kit.tool('resume', {}, (_, visit) => {
    visit.closeStream?.();
    return text(visit.closeStream ? 'still here' : 'there is no stream');
  });
  kit.tool('touch', {}, async (_, visit) => {
    await visit.updated('inn://guestbook');
    return text('touched');
  });
  kit.tool('change', { inputSchema: z.object({ list: z.string() }) }, async ({ list }, visit) => {
    const extra = { list, name: `extra${extras.length + 1}` };
    extras.push(extra);
    await visit.added(extra);
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
  // Refused until the bill is paid, which is told soon after the second call (2025-11-25 alone).
  kit.tool('pay_first', {}, (_, visit) => {
    if (++owed > 2) return text('paid');
    const elicitationId = 'bill-1';
    if (owed === 2) setTimeout(visit.complete(elicitationId), 50);
    throw new kit.UrlElicitationRequiredError([{ ...page, elicitationId }]);
  });
  kit.tool('think', {}, (_, { answers }) => (answers.thought ? text(said(answers.thought)) : { questions: { thought: sampling } }));
  kit.tool('look', {}, (_, { answers }) => (answers.roots ? text(places(answers.roots)) : { questions: { roots: rootsList } }));
  kit.tool('many', {}, (_, { answers: { name, thought, roots } }) => {
    if (!name) return { questions: { name: form('name', 'Who are you?'), thought: sampling, roots: rootsList } };
    return text(`${name.content.name}, ${said(thought)}, ${places(roots)}`);
  });
}

function resources(kit) {
  const plain = { mimeType: 'text/plain' };
  kit.resource('menu', 'inn://menu', plain, (uri) => contents(uri, { ...plain, text: 'Soup' }));
  const image = { mimeType: 'image/png' };
  kit.resource('photo', 'inn://photo', image, (uri) => contents(uri, { ...image, blob: Buffer.from([0x89, 0x50, 0x4e, 0x47]).toString('base64') }));
  kit.resource('guestbook', 'inn://guestbook', {}, (uri) => contents(uri, { text: 'Ann was here.' }));
  kit.resource('bell', 'inn://bell', { cacheHint: { ttlMs: 60_000, cacheScope: 'public' } }, (uri) => contents(uri, { text: String(++rung) }));
  kit.resource('safe', 'inn://safe', {}, (uri, { answers }) =>
    answers.code ? contents(uri, { text: `opened by ${answers.code.content.code}` }) : { questions: { code: form('code', 'Which code?') } },
  );
  const starting = (values) => (value) => values.filter((v) => v.startsWith(value));
  const json = { mimeType: 'application/json' };
  kit.template('room', 'inn://rooms/{number}', { number: starting(['10', '11', '20']) }, json, (uri, { number }) => contents(uri, { ...json, text: JSON.stringify({ number }) }));
}

function prompts(kit) {
  const style = (value, context) => (context?.arguments?.name === 'Ann' ? ['formal'] : ['formal', 'friendly', 'short']).filter((v) => v.startsWith(value));
  const argsSchema = z.object({ name: z.string(), style: kit.completed(z.string(), style) });
  kit.prompt('greet', { description: 'Greets a guest.', argsSchema }, (args) => messages(`Greet ${args.name}, ${args.style}`));
  kit.prompt('welcome', {}, (_, { answers }) => (answers.name ? messages(`Welcome, ${answers.name.content.name}`) : { questions: { name: form('name', 'Who are you?') } }));
  for (const name of ['breakfast', 'lunch']) kit.prompt(name, {}, () => messages(name));
}

/** Keeps the events of streams, so that they can be picked up again. */
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
