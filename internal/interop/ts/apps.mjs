// Shows the page of examples/board with the host code of @modelcontextprotocol/ext-apps. The argument
// is {version, server} in JSON.
//
// The script of the page runs in a context of its own with as much of a window as it uses. The module
// mcptest/browser tests pages in Chromium.
import assert from 'node:assert/strict';
import vm from 'node:vm';

import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { AppBridge, getToolUiResourceUri, McpUiResourceMetaSchema, McpUiToolMetaSchema, RESOURCE_MIME_TYPE } from '@modelcontextprotocol/ext-apps/app-bridge';

import { check, later } from './check.mjs';

const { version, server } = JSON.parse(process.argv[2]);
const modern = version === '2026-07-28';
const info = { name: 'interop', version: '1.0.0' };

const client = new Client(info, {
  capabilities: { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: [RESOURCE_MIME_TYPE] } } },
  ...(modern ? { versionNegotiation: { mode: { pin: version } } } : { supportedProtocolVersions: [version] }),
});
await client.connect(new StdioClientTransport({ command: server.command, args: server.args }));

/** Returns the window of a page, and the host's transport to it. */
function frame() {
  const listeners = [];
  const parent = {};
  const root = { dataset: {}, style: { setProperty: (name, value) => (root.style[name] = value) }, getBoundingClientRect: () => ({ height: 240 }) };
  const transport = {
    start: async () => {},
    close: async () => transport.onclose?.(),
    send: async (message) => setImmediate(() => listeners.forEach((fn) => fn({ source: parent, data: structuredClone(message) }))),
  };
  parent.postMessage = (message) => setImmediate(() => transport.onmessage?.(structuredClone(message)));
  const context = vm.createContext({
    window: { parent, innerWidth: 800, addEventListener: (type, fn) => listeners.push(fn) },
    document: { title: 'Board', documentElement: root, body: {}, addEventListener: () => {} },
    ResizeObserver: class { observe() {} },
    console,
  });
  return { context, root, transport };
}

let tool;
let html;

await check(`the tool and its page at ${version}`, async () => {
  assert.equal(client.getNegotiatedProtocolVersion(), version);
  const { tools } = await client.listTools();
  tool = tools.find((t) => t.name === 'show_board');
  assert.equal(getToolUiResourceUri(tool), 'ui://board');
  for (const t of tools) if (t._meta?.ui) McpUiToolMetaSchema.parse(t._meta.ui);
  assert.deepEqual(tools.find((t) => t.name === 'rename')._meta.ui.visibility, ['app']);
  const { contents } = await client.readResource({ uri: 'ui://board' });
  assert.equal(contents[0].mimeType, RESOURCE_MIME_TYPE);
  assert.equal(McpUiResourceMetaSchema.parse(contents[0]._meta.ui).prefersBorder, true);
  const { resources } = await client.listResources();
  assert.deepEqual(resources.find((r) => r.uri === 'ui://board')._meta.ui, contents[0]._meta.ui);
  html = contents[0].text;
});

const { context, root, transport } = frame();
const bridge = new AppBridge(client, info, {
  openLinks: {}, downloadFile: {}, serverTools: {}, serverResources: {}, logging: {}, message: { text: {} }, updateModelContext: { text: {}, structuredContent: {} },
}, { hostContext: { theme: 'dark', styles: { variables: { '--color-text-primary': 'white' } }, toolInfo: { tool } } });

/** Makes the bridge answer a request of the page with result, and returns a promise of the params. */
function asked(method, result = {}) {
  const { promise, resolve } = later();
  bridge[method] = async (params) => (resolve(params), result);
  return promise;
}

/** Returns a promise of the params of a notification of the page. */
function told(method) {
  const { promise, resolve } = later();
  bridge[method] = resolve;
  return promise;
}

await check('the page connects, with the theme of the host', async () => {
  const initialized = told('oninitialized');
  const size = told('onsizechange');
  await bridge.connect(transport);
  vm.runInContext(/<script>(\/\/ mcp-app\.js.*?)<\/script>/s.exec(html)[1], context);
  vm.runInContext(`
    const seen = { input: [], result: [], context: [] };
    const app = mcpApp.connect({
      name: "interop", version: "1.0.0", displayModes: ["inline"],
      onInput: (args) => seen.input.push(args),
      onResult: (result) => seen.result.push(mcpApp.value(result)),
      onContext: (context) => seen.context.push(context.theme),
      onTeardown: () => { seen.teardown = true; },
    });
  `, context);
  await initialized;
  await vm.runInContext('app.ready', context);
  assert.deepEqual(bridge.getAppVersion(), info);
  assert.deepEqual(bridge.getAppCapabilities(), { availableDisplayModes: ['inline'] });
  assert.equal(root.dataset.theme, 'dark');
  assert.equal(root.style['--color-text-primary'], 'white');
  assert.deepEqual(await size, { width: 800, height: 240 });
});

/** Runs a script in the page until it holds, and returns its value. */
async function until(script) {
  for (;;) {
    const value = vm.runInContext(script, context);
    if (value) return structuredClone(value);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

await check('the page gets the input and the result of the tool', async () => {
  await bridge.sendToolInput({ arguments: { a: 1 } });
  await bridge.sendToolResult(await client.callTool({ name: 'show_board', arguments: {} }));
  assert.deepEqual(await until('seen.input[0]'), { a: 1 });
  assert.equal((await until('seen.result[0]')).cards.length, 3);
});

await check('the page calls a tool', async () => {
  const moved = await vm.runInContext('app.callTool("move_card", { id: 1, to: "done" }).then(mcpApp.value)', context);
  assert.equal(moved.cards.at(-1).column, 'done');
  const err = await vm.runInContext('app.callTool("move_card", { id: 9, to: "done" }).then(() => "no error", (err) => err.message)', context);
  assert.match(err, /there is no card 9/);
});

await check('the page reads a resource', async () => {
  const [page] = await vm.runInContext('app.readResource("ui://board")', context);
  assert.equal(page.text, html);
});

await check('the page asks the host', async () => {
  const message = asked('onmessage');
  await vm.runInContext('app.sendMessage("hello")', context);
  assert.deepEqual((await message).content, [{ type: 'text', text: 'hello' }]);
  const link = asked('onopenlink');
  await vm.runInContext('app.openLink("https://example.com/")', context);
  assert.equal((await link).url, 'https://example.com/');
  const told = asked('onupdatemodelcontext');
  await vm.runInContext('app.updateContext({ cards: 3 })', context);
  assert.deepEqual((await told).structuredContent, { cards: 3 });
  const file = asked('ondownloadfile');
  await vm.runInContext('app.downloadFile({ type: "resource_link", uri: "ui://board", name: "board" })', context);
  assert.equal((await file).contents[0].uri, 'ui://board');
  asked('onrequestdisplaymode', { mode: 'inline' });
  assert.equal(await vm.runInContext('app.requestDisplayMode("fullscreen")', context), 'inline');
  asked('onopenlink', { isError: true });
  assert.match(await vm.runInContext('app.openLink("https://example.com/").catch((err) => err.message)', context), /the host refused ui\/open-link/);
});

await check('the page tells the host', async () => {
  const line = told('onloggingmessage');
  vm.runInContext('app.log("info", { a: 1 })', context);
  assert.deepEqual(await line, { level: 'info', logger: 'interop', data: { a: 1 } });
  const closing = told('onrequestteardown');
  vm.runInContext('app.close()', context);
  await closing;
});

await check('the host changes the theme, and removes the page', async () => {
  bridge.setHostContext({ theme: 'light' });
  await until('seen.context.includes("light")');
  assert.equal(root.dataset.theme, 'light');
  await bridge.teardownResource({});
  assert.ok(await until('seen.teardown'));
});

await bridge.close();
await client.close();
