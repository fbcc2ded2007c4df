// mcp-app.js connects a page to the host that shows it (MCP Apps, version 2026-01-26).
//
//	const app = mcpApp.connect({
//		name: "board",
//		onInput(args) {},     // the arguments of the tool
//		onResult(result) {},  // the result of the tool
//	});
//	const result = await app.callTool("move", { card: 3, to: "done" });
//	show(mcpApp.value(result));
//
// Part of github.com/mcpkit/mcpkit-go, package apps. MIT licence.
(() => {
	"use strict";

	const version = "2026-01-26";

	// connect connects the page, and returns an App. Its promise ready is fulfilled when the host has
	// answered. All options are optional:
	//
	//	name, version             what the page is called, for the host's log
	//	displayModes              the modes that the page supports: "inline", "fullscreen", "pip"
	//	autoSize                  false: do not tell the host the size of the page
	//	theme                     false: do not apply the host's theme, colours and fonts
	//	onInput(args)             the arguments of the tool are complete
	//	onPartialInput(args)      the model has written a part of the arguments
	//	onResult(result)          the tool has returned
	//	onCancelled(reason)       the call of the tool was cancelled
	//	onContext(context, changed)  the host's context has changed
	//	onTeardown()              the host is about to remove the page; it waits for a promise
	function connect(options = {}) {
		return new App(options);
	}

	// value returns what a tool returned: its structured content, or its text, parsed if it is JSON.
	function value(result) {
		if (result.structuredContent !== undefined) return result.structuredContent;
		const text = textOf(result);
		try {
			return JSON.parse(text);
		} catch {
			return text;
		}
	}

	function textOf(result) {
		return (result.content ?? []).filter((block) => block.type === "text").map((block) => block.text).join("\n");
	}

	class App {
		#options;
		#host = window.parent;
		#waiting = new Map(); // id of a request -> its promise
		#lastID = 0;
		#prefix = ""; // of the names of tools, where the server is mounted in another
		#size = {};
		#observer;

		// context is the host's context: theme, locale, timeZone, toolInfo, displayMode and so on.
		context = {};
		// capabilities are what the host can do: openLinks, serverTools, message and so on.
		capabilities = {};

		constructor(options) {
			this.#options = options;
			window.addEventListener("message", (event) => {
				if (event.source === this.#host && event.data?.jsonrpc === "2.0") this.#receive(event.data);
			});
			document.addEventListener("click", (event) => this.#click(event));
			this.ready = this.#initialize();
			this.ready.catch((err) => console.error("mcp-app.js: the host did not accept the page:", err));
		}

		// callTool calls a tool of the page's server, and returns its result. If the tool fails, it
		// throws an Error with the tool's text; result is a member of it.
		async callTool(name, args = {}) {
			await this.ready;
			const result = await this.#request("tools/call", { name: this.#prefix + name, arguments: args });
			if (result.isError) throw Object.assign(new Error(textOf(result) || `the tool ${name} failed`), { result });
			return result;
		}

		// readResource returns the contents of a resource of the page's server.
		async readResource(uri) {
			await this.ready;
			return (await this.#request("resources/read", { uri })).contents;
		}

		// sendMessage adds a message of the user to the chat: a text, or a list of content blocks.
		async sendMessage(content) {
			await this.#accepted("ui/message", { role: "user", content: blocks(content) });
		}

		// updateContext tells the model what the page shows, for its next turn: a text, a list of content
		// blocks, or any other object as structured content. It replaces what was told before.
		async updateContext(what) {
			const params = typeof what === "string" || Array.isArray(what) ? { content: blocks(what) } : { structuredContent: what };
			await this.#accepted("ui/update-model-context", params);
		}

		// openLink opens a URL in the user's browser. Links in the page do that by themselves.
		async openLink(url) {
			await this.#accepted("ui/open-link", { url: String(url) });
		}

		// downloadFile offers the user a file: an embedded resource or a resource link.
		async downloadFile(...contents) {
			await this.#accepted("ui/download-file", { contents });
		}

		// requestDisplayMode asks for "inline", "fullscreen" or "pip", and returns the mode that is set.
		async requestDisplayMode(mode) {
			await this.ready;
			return (await this.#request("ui/request-display-mode", { mode })).mode;
		}

		// log writes to the host's log. level is "debug", "info", "warning", "error" and so on.
		log(level, data) {
			this.#notify("notifications/message", { level, logger: this.#options.name, data });
		}

		// close asks the host to remove the page.
		close() {
			this.#notify("ui/notifications/request-teardown", {});
		}

		// sendSize tells the host the size of the page. By default that happens when the size changes.
		sendSize(width, height) {
			if (width === this.#size.width && height === this.#size.height) return;
			this.#size = { width, height };
			this.#notify("ui/notifications/size-changed", { width, height });
		}

		async #initialize() {
			const { name = document.title || "page", version: appVersion = "1.0.0", displayModes } = this.#options;
			const result = await this.#request("ui/initialize", {
				protocolVersion: version,
				appInfo: { name, version: appVersion },
				appCapabilities: displayModes ? { availableDisplayModes: displayModes } : {},
			});
			this.capabilities = result.hostCapabilities ?? {};
			this.#change(result.hostContext ?? {});
			const tool = this.context.toolInfo?.tool;
			const own = tool?._meta?.["io.github.mcpkit/name"];
			if (own && tool.name.endsWith("_" + own)) this.#prefix = tool.name.slice(0, -own.length);
			this.#notify("ui/notifications/initialized", {});
			if (this.#options.autoSize !== false) this.#watchSize();
		}

		#receive(message) {
			if (message.method === undefined) {
				const waiting = this.#waiting.get(message.id);
				this.#waiting.delete(message.id);
				if (message.error) waiting?.reject(Object.assign(new Error(message.error.message), { code: message.error.code, data: message.error.data }));
				else waiting?.resolve(message.result);
				return;
			}
			if (message.id !== undefined) {
				this.#answer(message);
				return;
			}
			const params = message.params ?? {};
			switch (message.method) {
				case "ui/notifications/tool-input":
					this.#options.onInput?.(params.arguments ?? {});
					break;
				case "ui/notifications/tool-input-partial":
					this.#options.onPartialInput?.(params.arguments ?? {});
					break;
				case "ui/notifications/tool-result":
					this.#options.onResult?.(params);
					break;
				case "ui/notifications/tool-cancelled":
					this.#options.onCancelled?.(params.reason);
					break;
				case "ui/notifications/host-context-changed":
					this.#change(params);
					break;
			}
		}

		// answer answers a request of the host.
		async #answer({ id, method }) {
			const reply = { jsonrpc: "2.0", id };
			try {
				if (method === "ui/resource-teardown") await this.#options.onTeardown?.();
				else if (method !== "ping") reply.error = { code: -32601, message: `the page has no method ${method}` };
				if (!reply.error) reply.result = {};
			} catch (err) {
				reply.error = { code: -32603, message: String(err?.message ?? err) };
			}
			this.#post(reply);
		}

		// change takes over a part of the host's context.
		#change(changed) {
			this.context = { ...this.context, ...changed };
			if (this.#options.theme !== false) applyTheme(changed);
			this.#options.onContext?.(this.context, changed);
		}

		// click opens links to other sites by the host: a frame without the permission cannot.
		#click(event) {
			const link = event.target?.closest?.("a[href]");
			if (event.defaultPrevented || !link || !/^(https?:)?\/\//i.test(link.getAttribute("href"))) return;
			event.preventDefault();
			this.openLink(link.href).catch((err) => console.error("mcp-app.js: the host did not open the link:", err));
		}

		#watchSize() {
			const root = document.documentElement;
			const measure = () => {
				const height = root.style.height;
				root.style.height = "max-content";
				const box = root.getBoundingClientRect();
				root.style.height = height;
				this.sendSize(Math.ceil(window.innerWidth), Math.ceil(box.height));
			};
			this.#observer = new ResizeObserver(measure);
			this.#observer.observe(root);
			if (document.body) this.#observer.observe(document.body);
			measure();
		}

		// accepted sends a request whose result may say that the host refused.
		async #accepted(method, params) {
			await this.ready;
			const result = await this.#request(method, params);
			if (result?.isError) throw new Error(`the host refused ${method}`);
		}

		#request(method, params) {
			const id = ++this.#lastID;
			return new Promise((resolve, reject) => {
				this.#waiting.set(id, { resolve, reject });
				this.#post({ jsonrpc: "2.0", id, method, params });
			});
		}

		#notify(method, params) {
			this.#post({ jsonrpc: "2.0", method, params });
		}

		// The page does not know the origin of its host. Only the parent window gets the message.
		#post(message) {
			this.#host.postMessage(message, "*");
		}
	}

	function blocks(content) {
		return typeof content === "string" ? [{ type: "text", text: content }] : content;
	}

	// applyTheme gives the page the host's theme: the attribute data-theme, the colour scheme, and CSS
	// variables such as --color-text-primary.
	function applyTheme({ theme, styles }) {
		const root = document.documentElement;
		if (theme) {
			root.dataset.theme = theme;
			root.style.colorScheme = theme;
		}
		for (const [name, text] of Object.entries(styles?.variables ?? {})) {
			if (name.startsWith("--") && typeof text === "string") root.style.setProperty(name, text);
		}
		if (styles?.css?.fonts) {
			const id = "mcp-app-fonts";
			const style = document.getElementById(id) ?? document.head.appendChild(Object.assign(document.createElement("style"), { id }));
			style.textContent = styles.css.fonts;
		}
	}

	globalThis.mcpApp = Object.freeze({ connect, value });
})();
