// Logs in to a diary of ours with one of the TypeScript SDKs and calls its tools. The argument is
// {sdk, version, server, browser} in JSON; browser is the URL of one whose user allows everything.
import assert from 'node:assert/strict';

import { check } from './check.mjs';

const task = JSON.parse(process.argv[2]);
const packages = {
  '@modelcontextprotocol/sdk': ['@modelcontextprotocol/sdk/client/index.js', '@modelcontextprotocol/sdk/client/streamableHttp.js', '@modelcontextprotocol/sdk/client/auth.js'],
  '@modelcontextprotocol/client': ['@modelcontextprotocol/client'],
};
const { Client, StreamableHTTPClientTransport, UnauthorizedError } = Object.assign({}, ...(await Promise.all(packages[task.sdk].map((name) => import(name)))));

const second = task.sdk === '@modelcontextprotocol/client'; // the second generation
const redirect = 'http://127.0.0.1:1/callback'; // without a listener: the test reads the code from the redirect itself

/** Implements the SDKs' OAuthClientProvider in memory. */
class Provider {
  pages = [];
  kept = {};
  redirectUrl = redirect;
  clientMetadata = {
    client_name: 'interop', redirect_uris: [redirect], grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'], token_endpoint_auth_method: 'none', application_type: 'native',
  };
  state = () => (this.kept.state ??= crypto.randomUUID());
  clientInformation = () => this.kept.client;
  saveClientInformation = (value) => void (this.kept.client = value);
  tokens = () => this.kept.tokens;
  saveTokens = (value) => void (this.kept.tokens = value);
  codeVerifier = () => this.kept.verifier;
  saveCodeVerifier = (value) => void (this.kept.verifier = value);
  discoveryState = () => this.kept.discovery;
  saveDiscoveryState = (value) => void (this.kept.discovery = value);
  redirectToAuthorization = (page) => void this.pages.push(page);
  invalidateCredentials = (what) => {
    for (const name of { all: Object.keys(this.kept), client: ['client'], tokens: ['tokens'], verifier: ['verifier'], discovery: ['discovery'] }[what]) delete this.kept[name];
  };

  /** Opens the last login page and returns the parameters of its redirect to the client. */
  async approve() {
    const page = this.pages.at(-1);
    const response = await fetch(`${task.browser}?page=${encodeURIComponent(page)}`, { redirect: 'manual' });
    const back = new URL(response.headers.get('location'));
    assert.equal(back.origin + back.pathname, redirect);
    assert.equal(back.searchParams.get('state'), page.searchParams.get('state'));
    return back.searchParams;
  }
}

const provider = new Provider();
const scopes = () => provider.pages.at(-1).searchParams.get('scope');

/** Connects a client that uses the provider's tokens. */
async function connect() {
  const pinned = task.version === '2026-07-28' ? { versionNegotiation: { mode: { pin: task.version } } } : { supportedProtocolVersions: [task.version] };
  const client = new Client({ name: 'interop', version: '1.0.0' }, second ? pinned : {});
  const transport = new StreamableHTTPClientTransport(new URL(task.server.url), { authProvider: provider });
  return { client, transport, done: client.connect(transport) };
}

/** Approves the login after a refused request, and passes the code to the transport. */
async function login(transport) {
  const back = await provider.approve();
  await transport.finishAuth(second ? back : back.get('code'));
}

let peer;
await check('a client without a token must log in', async () => {
  const { transport, done } = await connect();
  await assert.rejects(done, UnauthorizedError);
  assert.equal(provider.pages.length, 1);
  assert.equal(scopes(), 'diary:read');
  assert.equal(provider.pages[0].searchParams.get('resource'), task.server.url);
  await login(transport);
});
await check('a client with a token connects', async () => {
  peer = await connect();
  await peer.done;
  const { tools } = await peer.client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name).sort(), ['read', 'write']);
  assert.equal(provider.pages.length, 1);
});
await check('a tool within its scopes is called', async () => {
  const { content } = await peer.client.callTool({ name: 'read', arguments: {} });
  assert.equal(content[0].text, '[]');
});
await check('a tool beyond its scopes leads to another login', async () => {
  // When scopes are missing, the first generation refreshes its token, which adds no scopes. It
  // asks the user only if it has no refresh token.
  if (!second) delete provider.kept.tokens.refresh_token;
  await assert.rejects(peer.client.callTool({ name: 'write', arguments: { text: 'It rained.' } }), UnauthorizedError);
  assert.equal(provider.pages.length, 2);
  assert.deepEqual(scopes().split(' ').sort(), ['diary:read', 'diary:write']);
  await login(peer.transport);
  const { content } = await peer.client.callTool({ name: 'write', arguments: { text: 'It rained.' } });
  assert.equal(content[0].text, 'Written, user.');
});
await check('an invalid token is refreshed', async () => {
  const { refresh_token } = provider.kept.tokens;
  provider.kept.tokens = { ...provider.kept.tokens, access_token: 'invalid' };
  const { content } = await peer.client.callTool({ name: 'read', arguments: {} });
  assert.match(content[0].text, /It rained\./);
  assert.notEqual(provider.kept.tokens.refresh_token, refresh_token);
  assert.equal(provider.pages.length, 2);
});
await check('close', async () => {
  if (task.version !== '2026-07-28') await peer.transport.terminateSession();
  await peer.client.close();
});
