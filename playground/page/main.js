// main.js is the page: tabs, lists, forms, calls.

import * as copy from "./copy.js";
import { byID, bytes, el, List, ms, tokens } from "./dom.js";
import { form, raw } from "./form.js";
import { Client, modern } from "./mcp.js";
import { code, contents, download, failure, logLine, pretty, result as showResult } from "./result.js";
import { Timeline } from "./timeline.js";
import * as view from "./view.js";

const tabs = [
	["overview", "Overview"], ["tools", "Tools"], ["resources", "Resources"], ["prompts", "Prompts"], ["skills", "Skills"], ["events", "Events"], ["tasks", "Tasks"], ["history", "History"], ["timeline", "Timeline"],
];
const tasksID = "io.modelcontextprotocol/tasks";
const skillsID = "io.modelcontextprotocol/skills";
const eventsID = "io.modelcontextprotocol/events";
const mostCalls = 100; // of the history
const mostPanes = 40; // whose forms and results are kept

// takeToken returns the token of the address, or that of this tab's last visit.
function takeToken() {
	const given = new URLSearchParams(location.hash.slice(1)).get("token");
	if (given) {
		sessionStorage.setItem("playground-token", given);
		history.replaceState(null, "", location.pathname);
	}
	return given ?? sessionStorage.getItem("playground-token") ?? "";
}

const token = takeToken();
const headers = { "Playground-Token": token };
const here = new URL(".", location.href).href;

const state = {
	client: null, tab: "overview", items: Object.fromEntries(tabs.map(([name]) => [name, []])), chosen: {}, panes: new Map(), target: "", running: null, timeline: null, last: 0,
};

const list = new List(byID("items"), {
	height: 50, key: (item) => item.key,
	draw(row, item) {
		row.append(el("span", { class: "name" }, named(item), item.badges.map((text) => el("span", { class: "badge" }, text))), el("span", { class: "line dim" }, item.line));
	},
	choose: (item) => open(item),
});

// named is the title of an item, with the name that models use if that differs.
const named = ({ title, name = title }) => [title, title === name ? null : el("code", { class: "dim" }, ` ${name}`)];

// A pane is the form, the buttons and the results of one item.
function pane(item, { about, body, action, input, request, extras = [] }) {
	const output = el("div", { class: "output", "aria-live": "polite" });
	const go = el("button", { type: "submit", class: "main" }, action);
	const cancel = el("button", { type: "button", hidden: true, onclick: () => one.cancel() }, "Cancel");
	const status = el("span", { class: "dim status", role: "status" });
	const copied = (what, text) => async () => {
		let words;
		try {
			words = text();
		} catch (err) {
			status.textContent = err.message;
			return;
		}
		try {
			await navigator.clipboard.writeText(words);
			status.textContent = `Copied ${what}.`;
		} catch {
			status.textContent = "The browser does not let the page copy. Copy the text below.";
		}
		output.replaceChildren(el("div", { class: "copied" }, code(words)), ...[...output.children].filter((child) => child.className !== "copied"));
	};
	const buttons = el("div", { class: "buttons" }, go, cancel, extras.map((extra) => extra.node), status);
	const copies = el("div", { class: "buttons small" }, el("span", { class: "dim" }, "Copy as"),
		el("button", { type: "button", class: "quiet", "data-copy": "curl", onclick: copied("a curl command", () => curlOf(one)) }, "curl"),
		el("button", { type: "button", class: "quiet", "data-copy": "command", onclick: copied("a command", () => commandOf(one)) }, "command"),
		el("button", { type: "button", class: "quiet", "data-copy": "test", onclick: copied("a test", () => testOf(one)) }, "test"));
	const node = el("form", { class: "pane", noValidate: true, onsubmit(event) { event.preventDefault(); one.run(); } }, about, body, buttons, copies, output);
	node.addEventListener("keydown", (event) => {
		if (event.key !== "Enter" || event.isComposing) return;
		const plain = event.target.matches("textarea:not(.code)") && !event.shiftKey;
		if (!(event.ctrlKey || event.metaKey) && !plain) return;
		if (event.target.closest(".question")) return; // has its own form
		event.preventDefault();
		node.requestSubmit();
	});
	const one = {
		node, output, input, item, last: null,
		request: () => request(),
		cancel: () => one.stop?.abort(new DOMException("cancelled", "AbortError")),
		async run() {
			if (one.stop) return;
			if (input && !input.check()) {
				node.querySelector(".wrong input,.wrong textarea,.wrong select,.wrong button")?.focus();
				status.textContent = "Some arguments need attention.";
				return;
			}
			status.textContent = "";
			one.stop = new AbortController();
			state.running = one;
			go.disabled = true;
			cancel.hidden = false;
			try {
				await call(one, request());
			} finally {
				one.stop = null;
				if (state.running === one) state.running = null;
				go.disabled = false;
				cancel.hidden = true;
			}
		},
	};
	return one;
}

// call sends the request of a pane and shows what happens.
async function call(one, { method, params, options = {} }, replayed) {
	const { client } = state;
	one.shown?.close();
	const progress = el("div", { class: "progress", hidden: true }, el("progress", { max: 1 }), el("span", {}));
	const logs = el("ol", { class: "logs", "aria-label": "log messages" });
	one.output.replaceChildren(progress, logs);
	state.timeline.expect(method, params.name ?? params.uri);
	const record = { key: `call-${++state.last}`, method, params, options, version: client.version, messages: [], answers: [], handshake: client.handshake, begun: new Date(), outcome: null };
	const answers = replayed?.answers.slice() ?? [];
	const begun = performance.now();
	try {
		const value = await client.request(method, params, {
			...options, signal: one.stop.signal,
			wire: (side, message) => options.notified || record.messages.push({ side, message }), // a stream has no end
			async ask(method, params, signal) {
				const at = answers.findIndex((old) => old.method === method && old.message === (params.message ?? ""));
				const result = at >= 0 ? answers.splice(at, 1)[0].result : await question(one.output, method, params, signal);
				record.answers.push({ method, message: params.message ?? "", result });
				return result;
			},
			progress({ progress: done, total, message = "" }) {
				progress.hidden = false;
				const bar = progress.firstChild;
				if (total) Object.assign(bar, { max: total, value: done });
				else bar.removeAttribute("value");
				progress.lastChild.textContent = [total ? `${Math.round((100 * done) / total)} %` : String(done), message].filter(Boolean).join(" · ");
			},
			log({ level, data }) {
				logs.append(el("li", { class: level }, el("b", {}, level), " ", logLine(data)));
				while (logs.children.length > 200) logs.firstChild.remove();
			},
		});
		const took = performance.now() - begun;
		record.outcome = { value, took };
		if (value.resultType === "task" || value.task) {
			const task = addTask(value.task ?? value, params.name);
			one.output.append(el("div", { class: "result" }, el("p", {}, "The call runs as a task: ", el("button", { type: "button", class: "quiet", onclick: () => choose("tasks", task.key) }, task.title))));
		} else {
			await finished(one, { method, params, value, took });
		}
	} catch (err) {
		const took = performance.now() - begun;
		const error = one.stop?.signal.aborted ? new Error("The call was cancelled.") : err;
		record.outcome = { error, took };
		one.output.append(failure(error, { took }));
	} finally {
		progress.hidden = true;
		one.output.lastElementChild.scrollIntoView({ block: "nearest" });
		one.last = record;
		if (!options.notified) addCall(record, one.item);
	}
	return record;
}

// finished shows the result of a call, with the page of the tool.
async function finished(one, { method, params, value, took }) {
	if (value.isError) pointOut(one, value);
	one.output.append(showResult(value, { took, read: (uri) => readInto(one, uri) }));
	const { tool } = one.item;
	if (method !== "tools/call" || !tool || !view.pageOf(tool)) return;
	try {
		const shown = await view.show({
			tool, args: params.arguments ?? {}, result: value, headers,
			read: (uri) => state.client.request("resources/read", { uri }),
			call: (wanted) => {
				const found = state.items.tools.find((item) => item.tool.name === wanted.name)?.tool;
				if (found?._meta?.ui?.visibility && !found._meta.ui.visibility.includes("app")) throw new Error(`the tool ${wanted.name} is not for pages`);
				return state.client.request("tools/call", wanted, { schema: found?.inputSchema });
			},
		});
		one.shown = shown;
		one.output.append(shown.node);
	} catch (err) {
		one.output.append(failure(err));
	}
}

// pointOut shows the faults that the server found beside the fields.
function pointOut(one, value) {
	for (const line of copyText(value).split("\n")) {
		const found = /^(\/[^:\s]*): (.+)$/.exec(line);
		if (found) one.input?.fault?.(found[1].slice(1).split("/").map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~")), found[2]);
	}
}

const copyText = (value) => (value.content ?? []).map((block) => block.text ?? "").join("\n");

async function readInto(one, uri) {
	try {
		const read = await state.client.request("resources/read", { uri });
		one.output.append(...read.contents.map((part) => contents(part, {})));
	} catch (err) {
		one.output.append(failure(err));
	}
}

// question asks the user in place of the server, and returns the answer.
function question(output, method, params, signal) {
	return new Promise((resolve, reject) => {
		const done = (result) => {
			node.remove();
			resolve(result);
		};
		signal?.addEventListener("abort", () => { node.remove(); reject(signal.reason); }, { once: true });
		const button = (text, result, kind = "") => el("button", { type: "button", class: kind, onclick: () => done(result) }, text);
		let body, send, rest, yesNo, first;
		let heading = "The server asks";
		switch (method) {
			case "elicitation/create":
				if (params.mode === "url") {
					body = [el("p", { class: "text" }, params.message), el("p", {}, el("a", { href: /^https?:/i.test(params.url) ? params.url : "#", target: "_blank", rel: "noopener noreferrer" }, params.url))];
					send = () => ({ action: "accept" });
				} else {
					const schema = params.requestedSchema ?? { type: "object" };
					const [[name, only] = [], ...others] = Object.entries(schema.properties ?? {});
					if (only?.type === "boolean" && others.length === 0) {
						body = [el("p", { class: "text" }, params.message), el("p", { class: "about" }, [only.title, only.description].filter((text) => text && text !== params.message).join(" · ") || name)];
						yesNo = [[true, "Yes"], [false, "No"]].map(([value, text]) => button(text, { action: "accept", content: { [name]: value } }, value ? "main" : ""));
						first = yesNo[only.default === false ? 1 : 0];
					} else {
						const fields = form(schema);
						body = [el("p", { class: "text" }, params.message), fields.node];
						send = () => (fields.check() ? { action: "accept", content: fields.get() ?? {} } : null);
					}
				}
				rest = [button("Decline", { action: "decline" }, "quiet"), button("Cancel", { action: "cancel" }, "quiet")];
				break;
			case "sampling/createMessage": {
				heading = "The server asks a model. You answer for it";
				const answer = el("textarea", { rows: 4, "aria-label": "answer of the model" });
				body = [params.systemPrompt ? el("p", { class: "about" }, params.systemPrompt) : null,
					showResult({ messages: params.messages ?? [] }), el("div", { class: "field" }, answer)];
				send = () => ({ role: "assistant", model: "playground", stopReason: "endTurn", content: { type: "text", text: answer.value } });
				break;
			}
			case "roots/list": {
				heading = "The server asks for your roots";
				const uris = el("textarea", { rows: 2, class: "code", "aria-label": "URIs of roots, one on each line", placeholder: "file:///home/me/project" });
				body = [el("div", { class: "field" }, uris, el("p", { class: "about" }, "One URI on each line."))];
				send = () => ({ roots: uris.value.split("\n").map((uri) => uri.trim()).filter(Boolean).map((uri) => ({ uri })) });
				break;
			}
			default:
				reject(Object.assign(new Error(`the playground has no method ${method}`), { code: -32601 }));
				return;
		}
		rest ??= [el("button", { type: "button", onclick: () => { node.remove(); reject(Object.assign(new Error("the user refused"), { code: -1 })); } }, "Refuse")];
		const submit = () => {
			const result = send();
			if (result) done(result);
		};
		const node = el("div", { class: "question", role: "group", "aria-label": heading }, el("h3", {}, heading), body,
			el("div", { class: "buttons" }, yesNo ?? el("button", { type: "button", class: "main", onclick: submit }, "Answer"), rest));
		node.addEventListener("keydown", (event) => {
			if (event.key !== "Enter" || event.isComposing || event.target.matches("button,a") || (event.target.matches("textarea") && event.shiftKey)) return;
			event.preventDefault();
			event.stopPropagation();
			submit();
		});
		output.append(node);
		(first ?? node.querySelector("input,textarea,select") ?? node.querySelector("button")).focus();
	});
}

// curlOf, commandOf and testOf write the request of a pane.
function curlOf(one) {
	const { method, params, options } = one.request();
	const { client } = state;
	if (!client.isModern) throw new Error("A request of 2025-11-25 needs a session. Choose 2026-07-28 for curl.");
	const message = client.message(method, params, { ...options, id: 1 });
	const own = !/^https?:/.test(state.target);
	if (!own) delete message.fields["Playground-Token"];
	return copy.curl(own ? `${here}mcp` : state.target, message);
}

function commandOf(one) {
	const { method, params } = one.request();
	return copy.command({ method, params, target: state.target || `${here}mcp`, token: state.target ? "" : `Playground-Token: ${token}`, version: state.client.version });
}

function testOf(one) {
	const { method, params, options = {} } = one.request();
	const same = !options.notified && one.last && JSON.stringify(one.last.params) === JSON.stringify(params) ? one.last : null;
	const answers = (same?.answers ?? []).filter((answer) => answer.method === "elicitation/create").map(({ message, result }) => ({ message, ...result }));
	return copy.test({ method, params, version: state.client.version, modern: state.client.isModern, tasks: options.tasks, answers, outcome: same?.outcome });
}

const argumentsOf = (value) => (value === undefined || (typeof value === "object" && Object.keys(value).length === 0) ? {} : { arguments: value });

// heading is the top of a pane.
function heading(title, name, badges, description) {
	return el("header", {},
		el("button", { type: "button", class: "quiet back", onclick: back }, "‹ Back"),
		el("h2", {}, title), title === name ? null : el("code", { class: "dim" }, name),
		el("p", { class: "badges" }, badges.filter(Boolean).map((text) => el("span", { class: "badge" }, text))),
		description ? el("p", { class: "text" }, description) : null);
}

// either returns an editor that is a form, or JSON if the user wants that.
function either(fields, schema) {
	if (Object.keys(schema.properties ?? {}).length === 0 && schema.additionalProperties === false) return { ...fields, node: el("p", { class: "about" }, "It has no arguments.") };
	const json = raw({ schema: {}, name: "Arguments as JSON", required: false, root: schema, rows: 8 });
	json.node.hidden = true;
	const button = el("button", { type: "button", class: "quiet", "aria-pressed": "false" }, "JSON");
	let asJSON = false;
	button.addEventListener("click", () => {
		if (asJSON) fields.set(json.get() ?? {});
		else json.set(fields.get());
		asJSON = !asJSON;
		json.node.hidden = !asJSON;
		fields.node.hidden = asJSON;
		button.setAttribute("aria-pressed", String(asJSON));
	});
	const active = () => (asJSON ? json : fields);
	return {
		node: el("div", { class: "arguments" }, el("div", { class: "switch" }, button), fields.node, json.node),
		get: () => active().get(), check: () => active().check(), fault: (path, text) => active().fault(path, text), set: (value) => active().set(value),
	};
}

// paneOf makes the pane of an item.
const paneOf = {
	tools(item) {
		const { tool } = item;
		const hints = tool.annotations ?? {};
		const input = either(form(tool.inputSchema), tool.inputSchema);
		const support = tool._meta?.["io.github.mcpkit/task"] ?? tool.execution?.taskSupport;
		const offered = state.client.isModern ? state.client.capabilities.extensions?.[tasksID] !== undefined : state.client.capabilities.tasks !== undefined;
		const asTask = offered && support && support !== "forbidden" ? el("input", { type: "checkbox", name: "task", checked: support === "required" }) : null;
		const one = pane(item, {
			about: heading(tool.title ?? hints.title ?? tool.name, tool.name, [
				hints.readOnlyHint ? "reads only" : hints.destructiveHint === false ? "adds only" : "may change or delete", hints.idempotentHint ? "idempotent" : "", hints.openWorldHint === false ? "closed world" : "",
				view.pageOf(tool) ? "page" : "", support ? `task ${support}` : "", `about ${tokens(JSON.stringify(tool).length)} tokens`,
			], tool.description),
			body: input.node, input, action: "Call",
			extras: asTask ? [{ node: el("label", { class: "box" }, asTask, "as a task") }] : [],
			request: () => ({ method: "tools/call", params: { name: tool.name, ...argumentsOf(input.get()) }, options: { schema: tool.inputSchema, tasks: asTask?.checked ?? false } }),
		});
		one.node.append(el("details", { class: "schema" }, el("summary", {}, "Definition"), code(pretty(tool))));
		return one;
	},
	resources(item) {
		const { resource } = item;
		const names = resource.uriTemplate ? variables(resource.uriTemplate) : [];
		const complete = completion({ type: "ref/resource", uri: resource.uriTemplate });
		const input = names.length ? form({ type: "object", properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])), required: names.filter((name) => !optional(resource.uriTemplate, name)) }, { complete: (name, value) => complete(name, value, input.get()) }) : null;
		return pane(item, {
			about: heading(resource.title ?? resource.name ?? item.title, item.title, [resource.mimeType, resource.size === undefined ? "" : bytes(resource.size), resource.uriTemplate ? "template" : ""], resource.description),
			body: input?.node ?? "", input, action: "Read",
			request: () => ({ method: "resources/read", params: { uri: resource.uri ?? expand(resource.uriTemplate, input.get()) } }),
		});
	},
	prompts(item) {
		const { prompt } = item;
		const args = prompt.arguments ?? [];
		const complete = completion({ type: "ref/prompt", name: prompt.name });
		const input = form({
			type: "object", properties: Object.fromEntries(args.map((arg) => [arg.name, { type: "string", title: arg.title, description: arg.description }])), required: args.filter((arg) => arg.required).map((arg) => arg.name),
		}, { complete: (name, value) => complete(name, value, input.get()) });
		return pane(item, {
			about: heading(prompt.title ?? prompt.name, prompt.name, [], prompt.description),
			body: input.node, input, action: "Get",
			request: () => ({ method: "prompts/get", params: { name: prompt.name, ...argumentsOf(input.get()) } }),
		});
	},
	skills(item) {
		const { skill } = item;
		const output = el("div", { class: "output" });
		const files = Array.isArray(skill.resources) ? skill.resources : [{ uri: skill.uri }];
		const read = async (file) => {
			try {
				const { contents: [part] } = await state.client.request("resources/read", { uri: file.uri });
				const raw = part.text !== undefined ? new TextEncoder().encode(part.text) : Uint8Array.from(atob(part.blob), (c) => c.charCodeAt(0));
				const digest = file.digest && crypto.subtle ? `sha256:${Array.from(new Uint8Array(await crypto.subtle.digest("SHA-256", raw)), (b) => b.toString(16).padStart(2, "0")).join("")}` : undefined;
				const verdict = digest === undefined ? "" : digest === file.digest && raw.length === file.size ? "The size and the digest are right." : "The size or the digest differs from the list!";
				output.replaceChildren(contents(part), verdict ? el("p", { class: verdict.endsWith("!") ? "bad" : "dim" }, verdict) : "");
			} catch (err) {
				output.replaceChildren(failure(err));
			}
		};
		return {
			item, output, node: el("div", { class: "pane" }, heading(skill.frontmatter?.name ?? skill.uri, skill.uri, [skill.resources === "dynamic" ? "dynamic" : ""], skill.frontmatter?.description),
				el("ul", { class: "files" }, files.map((file) => el("li", {}, el("button", { type: "button", class: "quiet", onclick: () => read(file) }, file.uri), file.size === undefined ? "" : el("span", { class: "dim" }, bytes(file.size))))),
				el("details", {}, el("summary", {}, "Entry"), code(pretty(skill))), output),
		};
	},
	events(item) {
		const { event } = item;
		const input = either(form(event.inputSchema), event.inputSchema);
		const push = event.delivery.includes("push");
		const notified = (method, { timestamp, data, error }) => {
			const what = method.split("/").at(-1);
			if (what === "heartbeat") return;
			const lines = one.output.querySelector(".logs");
			lines.append(el("li", { class: error ? "error" : "" }, el("b", {}, timestamp ?? what), " ", logLine(data ?? error?.message ?? "")));
			while (lines.children.length > 200) lines.firstChild.remove();
		};
		const one = pane(item, {
			about: heading(event.title ?? event.name, event.name, event.delivery, event.description),
			body: input.node, input, action: push ? "Listen" : "Poll",
			request: () => ({ method: push ? "events/stream" : "events/poll", params: { name: event.name, ...argumentsOf(input.get()) }, options: { name: null, ...(push && { notified }) } }),
		});
		one.node.append(el("details", { class: "schema" }, el("summary", {}, "Definition"), code(pretty(event))));
		return one;
	},
	tasks: (item) => taskPane(item),
	history(item) {
		const { record } = item;
		const output = el("div", { class: "output" });
		const compare = el("div", {});
		const one = {
			item: { ...item, tool: state.items.tools.find(({ tool }) => tool.name === record.params.name)?.tool }, output,
			cancel: () => one.stop?.abort(new DOMException("cancelled", "AbortError")),
			async replay() {
				if (one.stop) return null;
				one.stop = new AbortController();
				state.running = one;
				try {
					const again = await call(one, record, record);
					const same = JSON.stringify(comparable(again.outcome)) === JSON.stringify(comparable(record.outcome));
					compare.replaceChildren(el("p", { class: same ? "good" : "bad" }, same ? "The outcome is the same." : "The outcome differs from the recorded one."));
					return same;
				} finally {
					one.stop = null;
					state.running = null;
				}
			},
		};
		const save = () => download("call.txtar", new Blob([transcriptOf([record])], { type: "text/plain" }));
		one.node = el("div", { class: "pane" }, heading(record.params.name ?? record.params.uri, record.method, [record.version, record.begun.toLocaleTimeString(), ms(record.outcome.took)], ""),
			el("div", { class: "buttons" }, el("button", { type: "button", class: "main", "data-do": "replay", onclick: () => one.replay() }, "Replay"), el("button", { type: "button", "data-do": "save", onclick: save }, "Save transcript")),
			el("p", { class: "about" }, "Replay sends the call again, with the same answers. mcptest replays the transcript in a test: s.Replay(\"testdata/call.txtar\")."),
			compare, record.params.arguments ? el("details", { open: true }, el("summary", {}, "Arguments"), code(pretty(record.params.arguments))) : null,
			record.answers.length ? el("details", {}, el("summary", {}, "Answers"), code(pretty(record.answers))) : null,
			el("h3", {}, "Recorded"), record.outcome.error ? failure(record.outcome.error) : showResult(record.outcome.value),
			el("details", {}, el("summary", {}, "Transcript"), code(transcriptOf([record]))), output);
		return one;
	},
	timeline: () => null,
};

// comparable is what two outcomes of a call have in common.
function comparable({ value, error }) {
	if (error) return { error: error.message.replace(/\(ref \w+\)/, "") };
	const { _meta, requestState, ...rest } = value;
	return rest;
}

function transcriptOf(records) {
	const handshake = records.find((record) => record.version !== modern)?.handshake ?? [];
	return copy.transcript([...handshake, ...records.flatMap((record) => record.messages)], state.client.serverInfo.name);
}

// completion returns a function that completes arguments, if the server can.
function completion(ref) {
	return async (name, value, others) => {
		if (!state.client.capabilities.completions) return [];
		const context = Object.fromEntries(Object.entries(others ?? {}).filter(([other, text]) => other !== name && typeof text === "string"));
		const { completion: found } = await state.client.request("completion/complete", { ref, argument: { name, value }, context: { arguments: context } });
		return found?.values ?? [];
	};
}

// variables, optional and expand read URI templates (RFC 6570).
const expressions = /\{([+#./;?&]?)([^}]*)\}/g;
const names = (text) => text.split(",").map((name) => name.replace(/(\*|:\d+)$/, ""));
const variables = (template) => [...template.matchAll(expressions)].flatMap(([, , text]) => names(text));
const optional = (template, name) => [...template.matchAll(expressions)].some(([, kind, text]) => "?&".includes(kind) && kind !== "" && names(text).includes(name));

function expand(template, values = {}) {
	return template.replace(expressions, (_, kind, text) => {
		const open = kind === "+" || kind === "#";
		const write = (value) => (open ? encodeURI(value) : encodeURIComponent(value).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`));
		const given = names(text).filter((name) => values?.[name] !== undefined && values[name] !== "");
		if (given.length === 0) return "";
		const named = kind === ";" || kind === "?" || kind === "&";
		return ({ "+": "" }[kind] ?? kind) + given.map((name) => (named ? `${name}=` : "") + write(values[name])).join({ "": ",", "+": ",", "#": ",", "?": "&" }[kind] ?? kind);
	});
}

// addTask adds a task of the page, or one that the user looks up.
function addTask(task, tool = "") {
	let item = state.items.tasks.find((one) => one.key === task.taskId);
	if (!item) {
		item = { key: task.taskId, title: tool || task.taskId, line: task.status ?? "", badges: [], task };
		state.items.tasks.unshift(item);
	}
	refresh("tasks");
	return item;
}

function taskPane(item) {
	const status = el("p", { class: "facts", role: "status" });
	const output = el("div", { class: "output" });
	const cancel = el("button", { type: "button", onclick: () => act("tasks/cancel", { taskId: item.key }) }, "Cancel the task");
	const about = el("div", {});
	const node = el("div", { class: "pane" }, heading(item.title, item.key, [], ""), status, el("div", { class: "buttons" }, cancel), output, about);
	const asked = new Set(); // keys of questions that are shown
	const act = async (method, params) => {
		try {
			await state.client.request(method, params, { tasks: true });
		} catch (err) {
			output.append(failure(err));
		}
	};
	const ended = (task) => ["completed", "failed", "cancelled"].includes(task.status);
	const look = async () => {
		const { client } = state;
		const task = await client.request("tasks/get", { taskId: item.key }, { tasks: true });
		Object.assign(item, { task, line: [task.status, task.statusMessage].filter(Boolean).join(": ") });
		status.textContent = item.line;
		cancel.hidden = ended(task);
		refresh("tasks");
		for (const [key, { method, params }] of Object.entries(task.inputRequests ?? {})) {
			if (asked.has(key)) continue;
			asked.add(key);
			question(output, method, params ?? {}).then((answer) => act("tasks/update", { taskId: item.key, inputResponses: { [key]: answer } })).catch((err) => output.append(failure(err)));
		}
		// Questions of legacy tasks arrive while the client waits for the result.
		if (!client.isModern && task.status === "input_required" && !one.waits) {
			one.waits = true;
			client.request("tasks/result", { taskId: item.key }, { ask: (method, params, signal) => question(output, method, params, signal) }).catch(() => {}).finally(() => { one.waits = false; });
		}
		if (!ended(task)) return false;
		output.replaceChildren();
		if (task.status === "completed") {
			const value = client.isModern ? task.result : await client.request("tasks/result", { taskId: item.key });
			output.append(showResult(value, {}));
		}
		if (task.error) output.append(failure(Object.assign(new Error(task.error.message), { data: task.error.data })));
		about.replaceChildren(el("details", {}, el("summary", {}, "Task"), code(pretty(task))));
		return true;
	};
	const one = {
		node, item, output,
		async follow() {
			if (one.following) return;
			one.following = true;
			try {
				while (!(await look())) await new Promise((resolve) => setTimeout(resolve, Math.max(item.task.pollIntervalMs ?? item.task.pollInterval ?? 1000, 200)));
			} catch (err) {
				output.replaceChildren(failure(err));
			} finally {
				one.following = false;
			}
		},
	};
	return one;
}

// addCall adds a call to the history.
function addCall(record, item) {
	const { value, error } = record.outcome;
	const outcome = error ? error.message : value.isError ? "tool error" : value.resultType === "task" || value.task ? "task" : "ok";
	state.items.history.unshift({ key: record.key, title: record.params.name ?? record.params.uri, line: `${record.method} · ${outcome}`, badges: [ms(record.outcome.took)], record, tool: item.tool });
	for (const old of state.items.history.splice(mostCalls)) state.panes.delete(`history ${old.key}`);
	refresh("history");
}

// open shows an item.
function open(item) {
	state.chosen[state.tab] = item.key;
	const key = `${state.tab} ${item.key}`;
	let one = state.panes.get(key);
	if (!one) {
		one = paneOf[state.tab](item);
		state.panes.set(key, one);
		for (const old of state.panes.keys()) {
			if (state.panes.size <= mostPanes) break;
			if (!state.panes.get(old).stop && old !== key) state.panes.delete(old);
		}
	}
	byID("detail").replaceChildren(one.node);
	byID("detail").scrollTop = 0;
	document.body.dataset.open = "true";
	one.follow?.();
}

function back() {
	delete document.body.dataset.open;
	byID("items").focus();
}

// choose shows a tab, and an item of it.
function choose(tab, key) {
	show(tab);
	const item = state.items[tab].find((one) => one.key === key);
	if (item) {
		list.mark(key);
		open(item);
	}
}

// show shows a tab.
function show(tab) {
	state.tab = tab;
	document.body.dataset.tab = tab;
	delete document.body.dataset.open;
	for (const button of byID("tabs").children) {
		const chosen = button.dataset.tab === tab;
		button.setAttribute("aria-selected", String(chosen));
		button.tabIndex = chosen ? 0 : -1;
	}
	byID("filter").value = "";
	bar(tab);
	refresh(tab);
	byID("items").scrollTop = 0;
	const chosen = state.chosen[tab];
	const item = state.items[tab].find((one) => one.key === chosen);
	list.mark(item?.key ?? null);
	if (item) {
		open(item);
		delete document.body.dataset.open;
	} else {
		byID("detail").replaceChildren(tab === "overview" ? overview() : el("p", { class: "about hint" }, "Choose an entry of the list."));
	}
}

// bar shows what a tab has above its list.
function bar(tab) {
	const node = byID("catalog-bar");
	node.hidden = tab !== "tasks" && tab !== "history";
	node.replaceChildren();
	if (tab === "tasks") {
		const id = el("input", { "aria-label": "ID of a task", placeholder: "ID of a task", autocomplete: "off", spellcheck: false });
		const look = () => id.value.trim() && choose("tasks", addTask({ taskId: id.value.trim() }).key);
		id.addEventListener("keydown", (event) => event.key === "Enter" && look());
		node.append(id, el("button", { type: "button", onclick: look }, "Look up"));
	}
	if (tab === "history") {
		node.append(
			el("button", { type: "button", "data-do": "replay-all", onclick: replayAll }, "Replay all"),
			el("button", { type: "button", onclick: () => download("calls.txtar", new Blob([transcriptOf(state.items.history.map((item) => item.record).filter((record) => record.version === state.client.version).reverse())], { type: "text/plain" })) }, "Save all"),
			el("button", { type: "button", class: "quiet", onclick: () => { state.items.history = []; show("history"); } }, "Clear"));
	}
}

async function replayAll() {
	const recorded = [...state.items.history].reverse();
	for (const item of recorded) {
		const one = state.panes.get(`history ${item.key}`) ?? paneOf.history(item);
		state.panes.set(`history ${item.key}`, one);
		item.badges = [(await one.replay()) ? "same" : "differs"];
		refresh("history");
	}
}

// overview says what the server is and has.
function overview() {
	const { client } = state;
	if (!client?.connected) return el("div", { class: "pane overview" });
	const { name, title = name ?? "server", description, version, websiteUrl } = client.serverInfo;
	const chars = state.items.tools.reduce((sum, item) => sum + JSON.stringify(item.tool).length, 0);
	const facts = [["Name", [name, version].filter(Boolean).join(" ")], ["Website", websiteUrl], ["Clients connect to", state.target], ["Protocol", client.version],
		["Extensions", Object.keys(client.capabilities.extensions ?? {}).join(", ")], ["Tokens", chars ? `about ${tokens(chars)} in tools/list` : ""]];
	const lists = tabs.slice(1, 6).filter(([tab]) => state.items[tab].length).map(([tab, heading]) => el("section", { class: "entries" }, el("h3", {}, heading),
		el("ul", {}, state.items[tab].map((item) => el("li", {}, el("button", { type: "button", class: "quiet", onclick: () => choose(tab, item.key) }, named(item)), el("span", { class: "dim" }, item.about))))));
	return el("div", { class: "pane overview" }, el("h2", {}, title), description ? el("p", { class: "text" }, description) : null,
		client.instructions ? el("p", { class: "text" }, client.instructions) : null,
		el("dl", {}, facts.filter(([, text]) => text).map(([name, text]) => [el("dt", {}, name), el("dd", {}, text)])),
		lists.length ? lists : el("p", {}, "The server has no tools, resources, prompts, skills or events yet."));
}

// refresh draws the list of a tab and the counts.
function refresh(tab) {
	for (const button of byID("tabs").children) button.lastChild.textContent = state.items[button.dataset.tab].length || "";
	if (tab !== state.tab) return;
	const words = byID("filter").value.toLowerCase();
	const items = state.items[tab].filter((item) => !words || `${item.title} ${item.line} ${item.key}`.toLowerCase().includes(words));
	list.set(items);
	const none = { tasks: "Tasks that you start appear here.", history: "Calls that you make appear here." }[tab] ?? `The server has no ${tab}.`;
	byID("catalog-note").textContent = items.length ? "" : state.items[tab].length ? "Nothing matches." : state.client ? none : "";
}

const firstLine = (text = "") => text.split("\n")[0];

// entry is an item of a list of the server.
const entry = (name, title, description) => ({ key: name, name, title: title || name, about: firstLine(description), line: firstLine(description), badges: [] });

// load reads the lists of the server.
async function load(which) {
	const { client } = state;
	const caps = client.capabilities;
	const jobs = {
		tools: async () => (caps.tools ? (await client.list("tools/list", "tools")).map((tool) => ({
			...entry(tool.name, tool.title ?? tool.annotations?.title, tool.description), line: `${tokens(JSON.stringify(tool).length)} tokens · ${firstLine(tool.description)}`,
			badges: view.pageOf(tool) ? ["page"] : [], tool,
		})) : []),
		resources: async () => {
			if (!caps.resources) return [];
			const all = (await client.list("resources/list", "resources")).map((resource) => ({ ...entry(resource.uri, "", resource.description ?? resource.title ?? resource.name), resource }));
			const templates = (await client.list("resources/templates/list", "resourceTemplates")).map((resource) => ({ ...entry(resource.uriTemplate, "", resource.description ?? resource.title ?? resource.name), badges: ["template"], resource }));
			return [...templates, ...all];
		},
		prompts: async () => (caps.prompts ? (await client.list("prompts/list", "prompts")).map((prompt) => ({ ...entry(prompt.name, prompt.title, prompt.description), prompt })) : []),
		skills: async () => (client.isModern && caps.extensions?.[skillsID] ? (await client.list("skills/list", "skills")).map((skill) => ({ ...entry(skill.uri, skill.frontmatter?.name, skill.frontmatter?.description), name: undefined, skill })) : []),
		events: async () => (client.isModern && caps.extensions?.[eventsID] ? (await client.list("events/list", "events")).map((event) => ({ ...entry(event.name, event.title, event.description), event })) : []),
	};
	await Promise.all(Object.keys(jobs).filter((name) => !which || which === name).map(async (name) => {
		const items = await jobs[name]();
		if (client !== state.client) return;
		const before = new Map(state.items[name].map((item) => [item.key, JSON.stringify(item)]));
		state.items[name] = items;
		for (const item of items) if (before.has(item.key) && before.get(item.key) !== JSON.stringify(item)) state.panes.delete(`${name} ${item.key}`);
		refresh(name);
	}));
	byID("detail").querySelector(".overview")?.replaceWith(overview());
}

// connect begins to talk to the server with the chosen version.
async function connect() {
	state.client?.close();
	const client = new Client({
		url: "mcp", version: byID("version").value, headers,
		ask: (method, params, signal) => question(byID("detail"), method, params, signal),
		changed(method) {
			const which = { "notifications/tools/list_changed": "tools", "notifications/prompts/list_changed": "prompts", "notifications/resources/list_changed": "resources", "notifications/events/list_changed": "events" }[method];
			if (client === state.client && (which || method === "playground/reconnected")) load(which).catch(tell);
		},
	});
	state.client = client;
	state.panes.clear();
	byID("state").textContent = "connecting…";
	for (let wait = 500; client === state.client; wait = Math.min(wait * 2, 5000)) {
		try {
			await client.connect();
			if (client !== state.client) return client.close();
			client.connected = true;
			byID("server-name").textContent = client.serverInfo.title ?? client.serverInfo.name ?? "server";
			byID("server-version").textContent = client.serverInfo.version ?? "";
			document.title = `${client.serverInfo.name ?? "server"} · playground`;
			byID("state").textContent = "";
			await load();
			document.body.dataset.ready = client.version;
			if (!byID("detail").hasChildNodes()) show(state.tab);
			return;
		} catch (err) {
			tell(err);
			await new Promise((resolve) => setTimeout(resolve, wait));
		}
	}
}

function tell(err) {
	byID("state").textContent = err.message;
}

// keys are the shortcuts of the page.
function keys(event) {
	if (event.key === "Escape" && !byID("help").open) {
		if (state.running) state.running.cancel();
		else if (document.body.dataset.open) back();
		return;
	}
	if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input,textarea,select") || byID("help").open) return;
	const tab = tabs[Number(event.key) - 1]?.[0];
	if (tab) {
		show(tab);
		byID("tabs").querySelector("[aria-selected=true]").focus();
	} else if (event.key === "/") {
		byID("filter").focus();
	} else if (event.key === "?") {
		byID("help").showModal();
	} else if (event.key === "t") {
		if (byID("calls").offsetParent === null) show("timeline");
		byID("calls").focus();
	} else {
		return;
	}
	event.preventDefault();
}

function begin() {
	byID("tabs").append(...tabs.map(([name, title]) => el("button", { type: "button", role: "tab", "data-tab": name, onclick: () => show(name) }, title, el("span", { class: "count" }))));
	byID("tabs").addEventListener("keydown", (event) => {
		const to = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
		if (!to) return;
		const all = [...byID("tabs").children].filter((button) => button.offsetParent !== null);
		const next = all[(all.indexOf(document.activeElement) + to + all.length) % all.length];
		show(next.dataset.tab);
		next.focus();
	});
	byID("filter").addEventListener("input", () => refresh(state.tab));
	byID("filter").addEventListener("keydown", (event) => {
		if (event.key === "ArrowDown" || event.key === "Enter") {
			event.preventDefault();
			byID("items").focus();
			if (list.items.length) list.pick(0);
		}
	});
	byID("items").addEventListener("keydown", (event) => {
		if (event.key !== "Enter") return;
		const detail = byID("detail");
		(detail.querySelector(".pane :is(.members, .arguments) :is(input, textarea, select)") ?? detail.querySelector("button.main") ?? detail).focus();
	});
	byID("help-open").addEventListener("click", () => byID("help").showModal());
	byID("version").addEventListener("change", () => {
		delete document.body.dataset.ready;
		byID("detail").replaceChildren();
		connect();
	});
	addEventListener("keydown", keys);
	show("overview");
}

async function main() {
	begin();
	const response = await fetch("info", { headers });
	if (!response.ok) {
		document.body.replaceChildren(el("div", { class: "refused" }, el("h1", {}, "The token is missing"), el("p", {}, "Open the address that the program printed when it started. It ends with #token=…")));
		return;
	}
	const { target, maxEntries } = await response.json();
	state.target = target;
	state.timeline = new Timeline({ headers, max: maxEntries });
	state.timeline.follow();
	await connect();
}

main();
