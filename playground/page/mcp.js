// mcp.js is a client of MCP over Streamable HTTP, for versions 2025-11-25 and 2026-07-28.

export const modern = "2026-07-28";
export const legacy = "2025-11-25";

const ns = "io.modelcontextprotocol/";
export const info = { name: "mcpkit playground", version: "1.0.0" };
export const uiType = "text/html;profile=mcp-app";

// An RPCError is an error that the server sent.
export class RPCError extends Error {
	constructor({ code, message, data }) {
		super(message);
		Object.assign(this, { code, data });
	}
}

// events yields the data of the events of a response.
export async function* events(response) {
	const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = "";
	let data = [];
	for (;;) {
		const { value, done } = await reader.read();
		if (done) return;
		const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
		rest = lines.pop();
		for (const line of lines) {
			if (line === "") {
				if (data.length && data.join("") !== "") yield data.join("\n");
				data = [];
			} else if (line.startsWith("data:")) {
				data.push(line.slice(line[5] === " " ? 6 : 5));
			}
		}
	}
}

// encodeHeader writes a text as the value of a header field.
function encodeHeader(text) {
	if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text)) return text;
	const bytes = new TextEncoder().encode(text);
	return `=?base64?${btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join(""))}?=`;
}

// mirrored returns the header fields that mirror arguments (x-mcp-header in the schema).
function mirrored(schema, args, headers = {}) {
	for (const [name, property] of Object.entries(schema?.properties ?? {})) {
		const value = args?.[name];
		if (value === undefined || value === null) continue;
		if (property["x-mcp-header"]) headers["Mcp-Param-" + property["x-mcp-header"]] = encodeHeader(typeof value === "object" ? JSON.stringify(value) : String(value));
		else if (typeof value === "object") mirrored(property, value, headers);
	}
	return headers;
}

// A Client sends requests with one version of the protocol. The options are
//
//	url, headers       where it sends them, with which header fields
//	version            modern or legacy
//	ask(method, params, signal)   returns the answer to a question of the server
//	changed(method, params)       is called for notifications outside of requests
export class Client {
	#lastID = 0;
	#session = "";
	#stop = new AbortController();
	#handshake = [];

	capabilities = {};
	serverInfo = {};
	instructions = "";
	versions = [];

	constructor(options) {
		Object.assign(this, { ask: null, changed() {}, headers: {} }, options);
	}

	get isModern() { return this.version === modern; }

	// handshake are the messages that open the session, for transcripts.
	get handshake() { return this.#handshake; }

	async connect() {
		if (this.isModern) {
			const found = await this.request("server/discover", {});
			this.capabilities = found.capabilities ?? {};
			this.instructions = found.instructions ?? "";
			this.versions = found.supportedVersions ?? [];
			this.serverInfo = found._meta?.[ns + "serverInfo"] ?? {};
			this.#listen();
			return;
		}
		await this.#open();
	}

	// open opens a session (2025-11-25).
	async #open() {
		this.#session = "";
		this.#handshake = [];
		const begun = await this.request("initialize", { protocolVersion: this.version, capabilities: this.#declared({}), clientInfo: info });
		this.version = begun.protocolVersion;
		this.capabilities = begun.capabilities ?? {};
		this.instructions = begun.instructions ?? "";
		this.serverInfo = begun.serverInfo ?? {};
		await this.#send({ jsonrpc: "2.0", method: "notifications/initialized" });
		this.#get();
	}

	// close ends the session and all streams.
	close() {
		this.#stop.abort();
		if (this.#session) fetch(this.url, { method: "DELETE", headers: this.#fields({}) }).catch(() => {});
	}

	#declared({ tasks }) {
		const extensions = { [ns + "ui"]: { mimeTypes: [uiType] } };
		if (tasks) extensions[ns + "tasks"] = {};
		const caps = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
		return this.isModern ? { ...caps, extensions } : caps;
	}

	#fields(extra) {
		const fields = { ...this.headers, ...extra };
		if (this.isModern || this.#session) fields["MCP-Protocol-Version"] = this.version;
		if (this.#session) fields["Mcp-Session-Id"] = this.#session;
		return fields;
	}

	// message returns a request as it is sent, and its header fields.
	message(method, params, { name = params.name ?? params.uri ?? params.taskId, schema, tasks, id = ++this.#lastID } = {}) {
		const meta = { ...params._meta };
		const fields = { "Content-Type": "application/json", Accept: "application/json, text/event-stream" };
		if (this.isModern) {
			Object.assign(meta, {
				[ns + "protocolVersion"]: this.version, [ns + "clientInfo"]: info,
				[ns + "clientCapabilities"]: this.#declared({ tasks }), [ns + "logLevel"]: "debug",
			});
			fields["Mcp-Method"] = method;
			if (typeof name === "string" && method !== "completion/complete") fields["Mcp-Name"] = encodeHeader(name);
			Object.assign(fields, mirrored(schema, params.arguments));
		} else if (tasks && method === "tools/call") {
			params = { ...params, task: {} };
		}
		if (method !== "server/discover" && params._meta?.progressToken === undefined && method === "tools/call") meta.progressToken = id;
		const body = { jsonrpc: "2.0", id, method, params: Object.keys(meta).length ? { ...params, _meta: meta } : params };
		return { body, fields: this.#fields(fields) };
	}

	// request sends a request and returns its result. Questions of the server are answered with ask.
	// Options: signal; ask(method, params, signal), instead of that of the client; progress(params) and
	// log(params); notified(method, params), which gets other notifications on the stream of the request;
	// wire(side, message), which gets all messages; name, of the header Mcp-Name; schema, of the tool; tasks, if the
	// call may become a task.
	async request(method, params, options = {}) {
		for (let round = params; ;) {
			const result = await this.#exchange(method, round, options);
			if (result?.resultType !== "input_required") return result;
			const inputResponses = await this.answer(result.inputRequests ?? {}, options);
			round = { ...params, inputResponses };
			if (result.requestState !== undefined) round.requestState = result.requestState;
		}
	}

	// answer asks all questions of a result, one after the other.
	async answer(requests, { signal, ask = this.ask }) {
		const responses = {};
		for (const [key, { method, params }] of Object.entries(requests)) responses[key] = await ask(method, params ?? {}, signal);
		return responses;
	}

	async #exchange(method, params, options) {
		const { body, fields } = this.message(method, params, options);
		const record = (side, message) => {
			options.wire?.(side, message);
			if (method === "initialize") this.#handshake.push({ side, message });
		};
		record("client", body);
		const stop = AbortSignal.any([this.#stop.signal, options.signal].filter(Boolean));
		const cancel = () => {
			if (!this.isModern) this.#send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: body.id, reason: "cancelled in the playground" } }).catch(() => {});
		};
		options.signal?.addEventListener("abort", cancel, { once: true });
		try {
			const response = await fetch(this.url, { method: "POST", headers: fields, body: JSON.stringify(body), signal: stop });
			if (response.status === 404 && this.#session && method !== "initialize") { // the server has restarted
				await this.#open();
				this.changed("playground/reconnected", {});
				return await this.#exchange(method, params, options);
			}
			if (method === "initialize") this.#session = response.headers.get("Mcp-Session-Id") ?? "";
			for await (const message of this.#messages(response)) {
				if (message.method !== undefined) {
					record("server", message);
					await this.#receive(message, options, record);
					continue;
				}
				if (message.id !== body.id && message.id !== null) continue;
				record("server", message);
				if (message.error) throw new RPCError(message.error);
				return message.result;
			}
			throw new Error("the connection ended before the response");
		} finally {
			options.signal?.removeEventListener("abort", cancel);
		}
	}

	// messages yields the messages of a response.
	async *#messages(response) {
		const type = response.headers.get("Content-Type") ?? "";
		if (type.startsWith("text/event-stream")) {
			for await (const data of events(response)) yield JSON.parse(data);
		} else if (type.startsWith("application/json")) {
			yield await response.json();
		} else {
			throw new Error(`HTTP ${response.status}: ${(await response.text()).trim() || response.statusText}`);
		}
	}

	// receive takes a message of the server that is not the response.
	async #receive(message, options, record) {
		const { id, method, params = {} } = message;
		if (id === undefined) {
			if (method === "notifications/progress") options.progress?.(params);
			else if (method === "notifications/message") options.log?.(params);
			else (options.notified ?? this.changed)(method, params);
			return;
		}
		const reply = { jsonrpc: "2.0", id };
		try {
			reply.result = method === "ping" ? {} : await (options.ask ?? this.ask)(method, params, options.signal);
		} catch (err) {
			if (options.signal?.aborted) throw err;
			reply.error = { code: err.code ?? -32603, message: err.message };
		}
		record("client", reply);
		await this.#send(reply);
	}

	// send sends a notification or a response.
	async #send(message) {
		if (message.method === "notifications/initialized") this.#handshake.push({ side: "client", message });
		const fields = this.#fields({ "Content-Type": "application/json", Accept: "application/json, text/event-stream" });
		const response = await fetch(this.url, { method: "POST", headers: fields, body: JSON.stringify(message) });
		if (!response.ok) throw new Error(`HTTP ${response.status}`);
	}

	// listen hears of changed lists, until close (2026-07-28).
	async #listen() {
		const notifications = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
		if (this.capabilities.extensions?.[ns + "events"]?.listChanged) notifications.eventsListChanged = true;
		await this.#keep(async () => {
			const { body, fields } = this.message("subscriptions/listen", { notifications });
			return fetch(this.url, { method: "POST", headers: fields, body: JSON.stringify(body), signal: this.#stop.signal });
		});
	}

	// get opens the stream of the session (2025-11-25).
	async #get() {
		await this.#keep(() => fetch(this.url, { headers: this.#fields({ Accept: "text/event-stream" }), signal: this.#stop.signal }));
	}

	// keep keeps a stream open, also when the server restarts. It gives up when the server refuses it.
	async #keep(open) {
		for (let wait = 500; !this.#stop.signal.aborted; wait = Math.min(wait * 2, 10_000)) {
			try {
				const response = await open();
				if (response.status >= 400 && response.status < 500) return;
				if (!response.ok) throw new Error(response.statusText);
				for await (const message of this.#messages(response)) {
					wait = 500;
					if (message.method) this.#receive(message, {}, () => {}).catch(() => {});
					else if (message.error) return;
				}
			} catch {
				if (this.#stop.signal.aborted) return;
			}
			await new Promise((resolve) => setTimeout(resolve, wait));
			this.changed("playground/reconnected", {});
		}
	}

	// list returns all items of a list. It follows pages.
	async list(method, member) {
		const items = [];
		for (let cursor; ;) {
			const page = await this.request(method, cursor === undefined ? {} : { cursor });
			items.push(...(page[member] ?? []));
			cursor = page.nextCursor;
			if (cursor === undefined) return items;
		}
	}
}
