// view.js is a host of MCP Apps: it shows the page of a tool in a sandboxed frame.

import { el } from "./dom.js";
import { uiType } from "./mcp.js";

// pageOf returns the URI of the page of a tool, or undefined.
export const pageOf = (tool) => tool._meta?.ui?.resourceUri ?? tool._meta?.["ui/resourceUri"];

// show returns an element with the page of a tool. The options are
//
//	tool, args, result
//	read(uri)           reads a resource
//	call(params)        calls a tool for the page
//	said(method, params)  is called for what the page tells the host
//	headers             of requests to the playground
export async function show({ tool, args, result, read, call, said, headers }) {
	const page = (await read(pageOf(tool))).contents?.find((one) => one.mimeType === uiType);
	if (!page) throw new Error(`${pageOf(tool)} is not a page of the type ${uiType}`);
	const html = page.text ?? new TextDecoder().decode(Uint8Array.from(atob(page.blob), (c) => c.charCodeAt(0)));
	const ui = page._meta?.ui ?? {};
	const response = await fetch("frame", { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify({ html, ui }) });
	if (!response.ok) throw new Error(await response.text());
	const { id } = await response.json();
	const allow = Object.keys(ui.permissions ?? {}).map((name) => (name === "clipboardWrite" ? "clipboard-write" : name)).join("; ");
	const frame = el("iframe", { class: "app", title: `page of ${tool.name}`, sandbox: "allow-scripts allow-forms", allow, src: `frame?id=${encodeURIComponent(id)}` });
	const log = el("ol", { class: "said", "aria-label": "messages of the page" });
	const host = new Host({ frame, tool, args, result, read, call, said: (method, params) => {
		log.append(el("li", {}, el("b", {}, method), " ", el("code", {}, JSON.stringify(params ?? {}).slice(0, 500))));
		while (log.children.length > 100) log.firstChild.remove();
		said?.(method, params);
	} });
	return { node: el("div", { class: "apphost" }, frame, el("details", {}, el("summary", {}, "Messages of the page"), log)), close: () => host.close() };
}

// A Host answers the requests of a page.
class Host {
	constructor(options) {
		Object.assign(this, options);
		this.listener = (event) => {
			if (event.source === this.frame.contentWindow && event.data?.jsonrpc === "2.0") this.#receive(event.data);
		};
		addEventListener("message", this.listener);
		this.scheme = matchMedia("(prefers-color-scheme: dark)");
		this.themed = () => this.#notify("ui/notifications/host-context-changed", { theme: this.#theme() });
		this.scheme.addEventListener("change", this.themed);
	}

	close() {
		removeEventListener("message", this.listener);
		this.scheme.removeEventListener("change", this.themed);
	}

	#theme() { return this.scheme.matches ? "dark" : "light"; }

	// The origin of the page is opaque. Only its window gets the message.
	#post(message) { this.frame.contentWindow?.postMessage({ jsonrpc: "2.0", ...message }, "*"); }

	#notify(method, params) { this.#post({ method, params }); }

	async #receive({ id, method, params }) {
		if (method === undefined) return;
		if (!["ui/initialize", "ui/notifications/size-changed", "ping"].includes(method)) this.said(method, params);
		if (id === undefined) {
			if (method === "ui/notifications/initialized") {
				this.#notify("ui/notifications/tool-input", { arguments: this.args });
				this.#notify("ui/notifications/tool-result", this.result);
			}
			if (method === "ui/notifications/size-changed" && params?.height > 0) this.frame.style.height = `${Math.min(params.height, 900)}px`;
			return;
		}
		try {
			this.#post({ id, result: await this.#answer(method, params ?? {}) });
		} catch (err) {
			this.#post({ id, error: { code: err.code ?? -32603, message: err.message } });
		}
	}

	async #answer(method, params) {
		switch (method) {
			case "ui/initialize":
				return {
					protocolVersion: "2026-01-26", hostInfo: { name: "mcpkit playground", version: "1.0.0" },
					hostCapabilities: { openLinks: {}, serverTools: {}, serverResources: {}, logging: {}, message: { text: {} }, updateModelContext: { text: {}, structuredContent: {} } },
					hostContext: { theme: this.#theme(), toolInfo: { tool: this.tool }, displayMode: "inline", availableDisplayModes: ["inline"], locale: navigator.language, timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone, platform: "web", containerDimensions: { width: this.frame.clientWidth, maxHeight: 900 } },
				};
			case "ui/open-link":
				if (!/^https?:/i.test(params.url) || !confirm(`The page wants to open ${params.url}`)) return { isError: true };
				open(params.url, "_blank", "noopener,noreferrer");
				return {};
			case "ui/message": case "ui/update-model-context": case "ping": return {};
			case "ui/request-display-mode": return { mode: "inline" };
			case "tools/call": return this.call(params);
			case "resources/read": return this.read(params.uri);
			default: throw Object.assign(new Error(`the host has no method ${method}`), { code: -32601 });
		}
	}
}
