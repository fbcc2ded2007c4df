// Checks our servers with a TypeScript client. The argument is {sdk, version, transport, server,
// notes} in JSON: internal/conformance/server and, unless the transport is HTTP+SSE, examples/notes.
// An adapter (client-sdk.mjs, client-v2.mjs) hides the differences between the SDKs. Its
// connect(server) returns
//
//   client                          the client of the SDK, with listTools(), readResource() and so on
//   call(params, options)           calls a tool
//   request(request)                sends a request of any method
//   on(method, fn)                  handles a request or notification of the server
//   received                        every message of the server, in order
//   errors                          the errors that the client reported
//   sent()                          resolves when each message of the client has been sent, over HTTP with a status
//   skills                          the SDK's client of the Skills extension, if it has one
//   tasks(tools, answer)            opens a session of @modelcontextprotocol/ext-tasks, if it works with the SDK and version
//   streaming                       a promise that resolves when the GET stream of the session is open (HTTP, legacy)
//   version, close()
import assert from 'node:assert/strict';

import { check, later } from './check.mjs';

const { sdk, version, transport, server, notes } = JSON.parse(process.argv[2]);
const { connect } = await import(sdk.endsWith('/sdk') ? './client-sdk.mjs' : './client-v2.mjs');

// Errors that the clients report without need: for progress in one chunk with the result, after a
// cancellation, and for the stream that they close.
const harmless = [/^Received a progress notification for an unknown token: /, /"code":-32601/, /^SSE stream disconnected: AbortError/];

const first = (result) => result.content[0].text;

async function session(t, server, name, steps) {
  let peer;
  await check(`${name}: connect at ${t.version}`, async () => {
    peer = await connect(server, t);
    assert.equal(peer.version, t.version);
    assert.equal(peer.client.getServerVersion().name, name);
    const capabilities = peer.client.getServerCapabilities();
    for (const kind of ['tools', 'resources', 'prompts']) assert.ok(capabilities[kind], kind);
    assert.equal(capabilities.completions !== undefined, t.since('2025-03-26'));
  });
  if (!peer) return;
  for (const step of steps) await step(t, peer);
  // Closing aborts open requests, and the clients report that as an error. A response may arrive
  // before the status of a message that was posted earlier, so wait for each status first.
  await check(`${name}: each message arrives`, () => peer.sent());
  await check(`${name}: close`, () => peer.close());
  await check(`${name}: the client reports no errors`, async () => {
    let late = peer.late ?? 0; // responses sent before their cancellation arrived
    const excused = (e) => harmless.some((known) => known.test(e)) || (/^Received a response for an unknown message ID: /.test(e) && late-- > 0);
    assert.deepEqual(peer.errors.filter((e) => !excused(e)), []);
  });
}

async function tools(t, { client, call }) {
  await check('tools/list', async () => {
    const { tools } = await client.listTools();
    assert.ok(tools.length > 25, `${tools.length} tools`);
    for (const tool of tools) assert.equal(tool.inputSchema.type, 'object', tool.name);
    const { description } = tools.find((tool) => tool.name === 'test_simple_text');
    assert.equal(description, 'Returns text.');
  });
  await check('tools/call', async () => {
    assert.equal(first(await call({ name: 'test_simple_text' })), 'This is a simple text response for testing.');
  });
  await check('content: text, image, audio, resource', async () => {
    const { content } = await call({ name: 'test_multiple_content_types' });
    assert.deepEqual(content.map((c) => c.type), ['text', 'image', 'resource']);
    const [sound] = (await call({ name: 'test_audio_content' })).content;
    assert.equal(sound.type, t.since('2025-03-26') ? 'audio' : 'text'); // older versions have no audio content
  });
  await check('an argument mirrored by a header, not ASCII', async () => {
    assert.equal(first(await call({ name: 'test_x_mcp_header', arguments: { region: 'Zürich, 東京' } })), 'Region: Zürich, 東京');
  });
  await check('a closed stream is resumed', async () => {
    const want = t.http && t.version === '2025-11-25' ? 'Reconnection test completed successfully' : 'This connection cannot be resumed.';
    assert.equal(first(await call({ name: 'test_reconnection' })), want);
  });
}

async function questions(t, { call, on }) {
  const asked = [];
  const answers = []; // the next answers of the user
  on('elicitation/create', ({ params }) => {
    asked.push(params);
    return answers.shift();
  });
  const accept = (content) => ({ action: 'accept', content });
  on('sampling/createMessage', ({ params }) => {
    assert.equal(params.maxTokens, 100);
    return { role: 'assistant', model: 'm', content: { type: 'text', text: `echo of ${[params.messages[0].content].flat()[0].text}` } };
  });
  on('roots/list', () => ({ roots: [{ uri: 'file:///home', name: 'home' }] }));

  const forms = t.since('2025-06-18'); // the first version with elicitation
  if (forms) {
    await check('elicitation: accepted', async () => {
      answers.push(accept({ username: 'ann', email: 'ann@example.com' }));
      const result = await call({ name: 'test_elicitation', arguments: { message: 'Who are you?' } });
      assert.equal(first(result), 'User response: ann <ann@example.com>');
      const { message, requestedSchema } = asked.pop();
      assert.equal(message, 'Who are you?');
      assert.deepEqual(requestedSchema.required, ['username', 'email']);
      assert.equal(requestedSchema.properties.email.type, 'string');
    });
    await check('elicitation: declined, cancelled', async () => {
      answers.push({ action: 'decline' }, { action: 'cancel' });
      const ask = () => call({ name: 'test_elicitation', arguments: { message: 'Who are you?' } });
      assert.equal(first(await ask()), 'User response: declined');
      assert.equal(first(await ask()), 'User response: cancelled');
    });
    await check('elicitation: two questions in a row', async () => {
      answers.push(accept({ name: 'Ann' }), accept({ color: 'green' }));
      assert.equal(first(await call({ name: 'test_input_required_result_multi_round' })), 'Ann likes green');
      assert.equal(asked.pop().message, 'Hello, Ann. What is your favourite colour?');
    });
  }
  await check('sampling', async () => {
    assert.equal(first(await call({ name: 'test_sampling', arguments: { prompt: 'a word' } })), 'LLM response: echo of a word');
  });
  await check('roots', async () => {
    assert.match(first(await call({ name: 'test_input_required_result_list_roots' })), /^1 roots: .*file:\/\/\/home/);
  });
  if (forms) await check('three questions at once', async () => {
    answers.push(accept({ name: 'Ann' }));
    assert.equal(first(await call({ name: 'test_input_required_result_multiple_inputs' })), 'echo of Write a greeting., Ann (1 roots)');
  });
}

async function progress(t, { call, received }) {
  await check('progress', async () => {
    const from = received.length;
    const seen = [];
    const result = await call({ name: 'test_tool_with_progress' }, { onprogress: (p) => seen.push([p.progress, p.total]) });
    assert.equal(first(result), 'Tool with progress executed successfully');
    assert.deepEqual(seen, [[0, 100], [50, 100], [100, 100]].slice(0, seen.length));
    // The clients drop the last one if it arrives in one chunk with the result, so check the
    // received messages.
    const sent = received.slice(from).map((m) => (m.method ? m.params.progress : 'result'));
    assert.deepEqual(sent, [0, 50, 100, 'result']);
  });
}

async function logging(t, { client, call, on }) {
  await check('logging', async () => {
    const seen = [];
    on('notifications/message', ({ params }) => seen.push([params.level, params.data.msg ?? params.data.message ?? params.data]));
    const at = async (level) => {
      if (!t.modern) await client.setLoggingLevel(level);
      const _meta = t.modern ? { 'io.modelcontextprotocol/logLevel': level } : undefined;
      await call({ name: 'test_tool_with_logging', _meta });
    };
    await at('info');
    assert.deepEqual(seen.splice(0), [['info', 'Tool execution started'], ['info', 'Tool processing data'], ['info', 'Tool execution completed']]);
    await at('error');
    assert.deepEqual(seen, []);
  });
}

async function changes(t, peer) {
  const { client, call, on } = peer;
  const name = t.modern ? 'subscriptions/listen' : 'list_changed';
  await check(name, async () => {
    const tools = later();
    const prompts = later();
    on('notifications/tools/list_changed', tools.resolve);
    on('notifications/prompts/list_changed', prompts.resolve);
    const before = (await client.listTools()).tools.length;
    let subscription;
    if (t.modern) {
      subscription = await client.listen({ toolsListChanged: true, promptsListChanged: true, resourceSubscriptions: ['test://watched-resource', 'test://nowhere'] });
      assert.deepEqual(subscription.honoredFilter, { toolsListChanged: true, promptsListChanged: true, resourceSubscriptions: ['test://watched-resource'] });
    } else {
      await peer.streaming;
    }
    await call({ name: 'test_trigger_tool_change' });
    await tools.promise;
    assert.equal((await client.listTools()).tools.length, before + 1);
    assert.equal(first(await call({ name: 'test_comes_and_goes' })), 'here');
    await call({ name: 'test_trigger_prompt_change' });
    await prompts.promise;
    if (!subscription) return;
    await subscription.close();
    assert.equal(await subscription.closed, 'local');
  });
  if (t.modern) return;
  await check('subscribe and unsubscribe', async () => {
    await client.subscribeResource({ uri: 'test://watched-resource' });
    await client.unsubscribeResource({ uri: 'test://watched-resource' });
    await client.ping();
  });
}

async function resources(t, { client, received }) {
  await check('resources/list, templates/list', async () => {
    const { resources } = await client.listResources();
    assert.deepEqual(resources.map((r) => r.uri).sort(), ['skill://pdf-processing/SKILL.md', 'test://static-binary', 'test://static-text', 'test://watched-resource']);
    const { resourceTemplates } = await client.listResourceTemplates();
    assert.deepEqual(resourceTemplates.map((r) => r.uriTemplate), ['test://template/{id}/data']);
  });
  await check('resources/read: text, binary, template', async () => {
    const read = async (uri) => (await client.readResource({ uri })).contents[0];
    assert.equal((await read('test://static-text')).text, 'This is the content of the static text resource.');
    assert.equal(Buffer.from((await read('test://static-binary')).blob, 'base64').subarray(1, 4).toString(), 'PNG');
    assert.deepEqual(JSON.parse((await read('test://template/7%208/data')).text), { id: '7 8', templateTest: true, data: 'Data for ID: 7 8' });
  });
  await check('resources/read: unknown', async () => {
    await assert.rejects(client.readResource({ uri: 'test://nowhere' }), /resource "test:\/\/nowhere" not found/);
    assert.equal(received.at(-1).error.code, t.modern ? -32602 : -32002);
  });
}

async function skills(t, { skills }) {
  if (!skills) return; // this SDK has no skills
  await check('skills: list, get, read, directories', async () => {
    assert.ok(skills.supported && skills.directoryRead);
    const { skills: listed } = await skills.list();
    assert.deepEqual(listed.map((s) => s.uri), ['skill://pdf-processing/SKILL.md']);
    const { skill } = await skills.get(listed[0].uri);
    assert.deepEqual(skill, listed[0]);
    const main = await skills.read(skill);
    assert.ok(main.verified && main.body.includes('# PDF processing'));
    assert.deepEqual(main.frontmatter, skill.frontmatter);
    const forms = await skills.read(skill, 'references/FORMS.md');
    assert.ok(forms.verified && forms.text.startsWith('# Forms'));
    const { resources } = await skills.readDirectory('skill://pdf-processing');
    assert.deepEqual(resources.map((r) => [r.name, r.mimeType]), [['pdf-processing', 'text/markdown'], ['references', 'inode/directory']]);
    await assert.rejects(skills.get('skill://nothing/SKILL.md'), (e) => e.code === -32602);
  });
}

async function tasks(t, { client, tasks, on }) {
  if (!tasks) return;
  const { tools } = await client.listTools();
  const asked = [];
  const answer = ({ params }) => {
    asked.push(params.message);
    return { action: 'accept', content: Object.fromEntries(Object.keys(params.requestedSchema.properties).map((field) => [field, field === 'name' ? 'Ada' : true])) };
  };
  if (!t.modern) on('elicitation/create', answer); // the SDK gets these questions, and the package those of tasks
  let session = tasks(tools, answer);
  const run = async (name, args) => {
    const execution = await session.callTool(name, args);
    const { outcome } = await execution.settle();
    return { kind: execution.kind, status: outcome.status, text: outcome.result && first(outcome.result), isError: outcome.result?.isError, error: outcome.error };
  };
  // In 2025-11-25 the client decides which calls are tasks, and the package chooses those of tools that demand it.
  const kind = t.modern ? 'task' : 'immediate';
  await check('tasks: calls that become tasks', async () => {
    assert.equal((await run('greet', { name: 'Ada' })).text, 'Hello, Ada!');
    assert.deepEqual(await run('slow_compute', { seconds: 0.2, label: 'x' }), { kind, status: 'completed', text: 'computed x', isError: undefined, error: undefined });
  });
  await check('tasks: questions', async () => {
    assert.equal((await run('confirm_delete', { filename: 'a.txt' })).text, 'deleted a.txt');
    assert.equal((await run('multi_input', {})).text, 'Ada agreed: true');
    assert.equal((await run('test_tool_with_task', {})).text, 'Hello, Ada!');
    assert.deepEqual(asked.toSorted(), ['Delete a.txt?', 'Do you agree?', 'What is your name?', 'What is your name?']);
  });
  await check('tasks: errors', async () => {
    const job = await run('failing_job', {});
    assert.equal(job.kind, 'task');
    // An error of the tool completes a task of the extension, and fails one of 2025-11-25.
    if (t.modern) assert.deepEqual([job.status, job.isError, job.text], ['completed', true, 'the job failed']);
    else assert.equal(job.status, 'failed');
    if (t.modern) assert.equal((await run('protocol_error_job', {})).error.code, -32603);
    else await assert.rejects(run('protocol_error_job', {}), (e) => e.code === -32603);
  });
  if (t.modern) await check('tasks: another session resumes and cancels', async () => {
    const execution = await session.callTool('slow_compute', { seconds: 3600, label: 'x' });
    let reference;
    await execution.handoff((r) => { reference = r; });
    await session.close(); // a client has one session at a time
    session = tasks(tools, answer);
    const resumed = await session.resumeTask(reference);
    await resumed.cancel();
    assert.equal((await resumed.settle()).outcome.status, 'cancelled');
  });
  await check('tasks: close', () => session.close());
}

async function prompts(t, { client, on }) {
  await check('prompts/list, prompts/get', async () => {
    const { prompts } = await client.listPrompts();
    const { arguments: args } = prompts.find((p) => p.name === 'test_prompt_with_arguments');
    assert.deepEqual(args.map((a) => [a.name, a.required]), [['arg1', true], ['arg2', true]]);
    const { messages } = await client.getPrompt({ name: 'test_prompt_with_arguments', arguments: { arg1: 'a', arg2: 'b' } });
    assert.deepEqual(messages, [{ role: 'user', content: { type: 'text', text: "Prompt with arguments: arg1='a', arg2='b'" } }]);
  });
  await check('prompts/get: a missing argument', async () => {
    await assert.rejects(client.getPrompt({ name: 'test_prompt_with_arguments', arguments: { arg1: 'a' } }), (e) => e.code === -32602 && e.message.includes('arg2'));
  });
  if (t.since('2025-06-18')) await check('a prompt that asks', async () => {
    on('elicitation/create', () => ({ action: 'accept', content: { context: 'tests' } }));
    const { messages } = await client.getPrompt({ name: 'test_input_required_result_prompt' });
    assert.equal(messages[0].content.text, 'Use this context: tests');
  });
  await check('completion of a prompt argument', async () => {
    const { completion } = await client.complete({ ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' }, argument: { name: 'arg1', value: 'par' } });
    assert.deepEqual(completion.values, ['paris', 'park', 'party']);
  });
}

async function cancellation(t, peer) {
  const { client, call, on, received } = peer;
  await check('cancellation ends the call', async () => {
    const tool = { name: 'test_tool_with_progress' };
    const cancelOne = async () => {
      const from = received.length;
      const stop = new AbortController();
      await assert.rejects(call(tool, { signal: stop.signal, onprogress: () => stop.abort('enough') }), /enough|[Aa]bort/);
      // A second call takes as long as the first. When it ends, the first would have ended, too.
      await call(tool, { onprogress: () => {} });
      const seen = received.slice(from);
      return {
        ends: seen.filter((m) => m.method === 'notifications/progress' && m.params.progress === 100).length,
        answers: seen.filter((m) => m.id !== undefined && !m.method).length,
      };
    };
    // On a busy machine the call may end before the cancellation arrives.
    let got;
    for (let tries = 0; tries < 50 && got?.answers !== 1; tries++) {
      got = await cancelOne();
      if (got.answers > 1) peer.late = (peer.late ?? 0) + 1;
    }
    assert.deepEqual(got, { ends: 1, answers: 1 });
  });
  if (t.modern || !t.since('2025-06-18')) return; // there is no request that could be cancelled
  await check('cancelling a call cancels its question', async () => {
    const stop = new AbortController();
    const cancelled = later();
    on('elicitation/create', (_, context) => {
      const { signal } = context.mcpReq ?? context; // second and first generation
      signal.addEventListener('abort', cancelled.resolve);
      stop.abort('enough');
      return cancelled.promise.then(() => ({ action: 'cancel' }));
    });
    await assert.rejects(call({ name: 'test_elicitation', arguments: { message: 'Who?' } }, { signal: stop.signal }), /enough|[Aa]bort/);
    await cancelled.promise;
    await client.ping();
  });
}

async function structured(t, { client, call }) {
  await check('structured output', async () => {
    const { tools } = await client.listTools();
    const search = tools.find((tool) => tool.name === 'search');
    assert.equal(search.annotations.readOnlyHint, true);
    assert.equal(search.outputSchema?.type, t.modern ? 'array' : t.since('2025-06-18') ? 'object' : undefined);
    const hits = [{ id: 'welcome', text: '# Welcome\n\nThis is your first note.' }];
    const { structuredContent, content } = await call({ name: 'search', arguments: { query: 'first' } });
    assert.deepEqual(structuredContent, t.modern ? hits : t.since('2025-06-18') ? { result: hits } : undefined);
    assert.deepEqual(JSON.parse(content[0].text), hits);
  });
}

async function failures(t, { call, request }) {
  await check('bad arguments are a tool error', async () => {
    const result = await call({ name: 'search', arguments: { query: 'x', limit: 99, limits: 1 } });
    assert.equal(result.isError, true);
    assert.equal(result.structuredContent, undefined);
    for (const word of ['/query', '/limit', '/limits', 'did you mean "limit"?']) assert.ok(first(result).includes(word), `${word} in ${first(result)}`);
  });
  await check('the error of a method is a tool error', async () => {
    const result = await call({ name: 'add', arguments: { id: 'welcome', text: 'again' } });
    assert.equal(result.isError, true);
    assert.equal(first(result), 'there is a note "welcome" already; choose another id');
  });
  await check('an unknown tool, an unknown method', async () => {
    await assert.rejects(call({ name: 'serach' }), (e) => e.code === -32602 && e.message.includes('"serach"'));
    // Over HTTP, the response of 2026-07-28 has status 404, which the client treats as a transport
    // error.
    await assert.rejects(request({ method: 'notes/burn', params: {} }), (e) => e.code === -32601 || e.message.includes('"code":-32601'));
  });
}

async function completion(t, { client }) {
  await check('completion of a template variable', async () => {
    const { completion } = await client.complete({ ref: { type: 'ref/resource', uri: 'note://{id}' }, argument: { name: 'id', value: 'w' } });
    assert.deepEqual(completion.values, ['welcome']);
    const { contents } = await client.readResource({ uri: 'note://welcome' });
    assert.equal(contents[0].mimeType, 'text/markdown');
  });
}

const t = { version, modern: version === '2026-07-28', http: transport === 'http', since: (first) => version >= first };
await session(t, server, 'mcpkit-conformance', [tools, questions, progress, logging, changes, resources, skills, tasks, prompts, cancellation]);
if (notes) await session(t, notes, 'notes', [structured, failures, completion]);
