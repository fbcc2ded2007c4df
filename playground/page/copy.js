// copy.js writes calls as commands, as tests and as transcripts.

import { textOf } from "./result.js";

// quote quotes a word for a POSIX shell.
const quote = (word) => (/^[A-Za-z0-9_./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

// literal quotes a text for Go.
export function literal(text) {
	if (!text.includes("`") && !/[\x00-\x08\x0b-\x1f\ufeff]/.test(text) && (text.includes('"') || text.includes("\n") || text.includes("\\"))) return "`" + text + "`";
	return JSON.stringify(text).replace(/[\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16)}`);
}

// curl writes a request as a curl command.
export function curl(url, { body, fields }) {
	const headers = Object.entries(fields).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`);
	return ["curl -sS " + quote(url), ...headers, `-d ${quote(JSON.stringify(body))}`].join(" \\\n  ");
}

// argument writes an argument for the command line.
function argument(name, value) {
	if (typeof value === "string") return quote(`${name}=${value}`);
	return quote(`${name}:=${JSON.stringify(value)}`);
}

// command writes a call as a command of mcpkit.
export function command({ method, params, target, token, version }) {
	const flags = [`--protocol-version ${version}`];
	if (token) flags.push(`--header ${quote(token)}`);
	const args = Object.entries(params.arguments ?? {});
	const server = quote(target);
	switch (method) {
		case "tools/call": {
			const plain = args.every(([name]) => /^[^:=]+$/.test(name));
			const words = plain ? args.map(([name, value]) => argument(name, value)) : [`--json ${quote(JSON.stringify(params.arguments))}`];
			return ["mcpkit call", ...flags, server, quote(params.name), ...words].join(" ");
		}
		case "prompts/get": return ["mcpkit prompt", ...flags, server, quote(params.name), ...args.map(([name, value]) => quote(`${name}=${value}`))].join(" ");
		case "events/stream":
		case "events/poll": return ["mcpkit events", ...flags, server, quote(params.name), ...args.map(([name, value]) => argument(name, value))].join(" ");
		default: return ["mcpkit read", ...flags, server, quote(params.uri)].join(" ");
	}
}

const title = (name) => name.split(/[^A-Za-z0-9]+/).filter(Boolean).map((word) => word[0].toUpperCase() + word.slice(1)).join("") || "Call";

// answer writes the answer to a form as a value of Go.
function answer({ action, content = {} }) {
	if (action !== "accept") return action === "decline" ? "mcptest.Decline" : "mcptest.Cancel";
	const values = Object.values(content);
	if (values.length === 1 && typeof values[0] === "boolean" && "confirm" in content) return String(values[0]);
	return `json.RawMessage(${literal(JSON.stringify(content))})`;
}

// test writes a call as a test for mcptest. outcome is {value} or {error}.
export function test({ method, params, version, modern, answers, tasks, outcome }) {
	let server = "s";
	if (!modern) server += `.Version(${literal(version)})`;
	if (tasks) server += ".Tasks()";
	for (const one of answers) server += `.Answer(${literal(one.message)}, ${answer(one)})`;
	const json = JSON.stringify(params.arguments ?? {});
	const args = json === "{}" ? "nil" : `json.RawMessage(${literal(json)})`;
	let call, expect;
	const value = outcome?.value;
	switch (method) {
		case "tools/call":
			call = `${server}.Call(${literal(params.name)}, ${args})`;
			if (value?.isError) expect = `.Error(${literal(textOf(value))})`;
			else if (value?.structuredContent !== undefined) expect = `.OK().JSON(${literal(JSON.stringify(value.structuredContent))})`;
			else if (value) expect = `.OK().Text(${literal(textOf(value))})`;
			break;
		case "prompts/get":
			call = `${server}.Prompt(${literal(params.name)}, map[string]string{${Object.entries(params.arguments ?? {}).map(([k, v]) => `${literal(k)}: ${literal(v)}`).join(", ")}})`;
			expect = ".OK()";
			break;
		case "events/stream":
		case "events/poll":
			call = `next := ${server}.Events(${literal(params.name)}, ${args})\n\t// let it happen\n\tnext()`;
			expect = ".OK()";
			break;
		default:
			call = `${server}.Read(${literal(params.uri)})`;
			expect = value?.contents?.length === 1 && value.contents[0].text !== undefined ? `.OK().Text(${literal(value.contents[0].text)})` : ".OK()";
	}
	if (outcome?.error) expect = `.ErrorContains(${literal(outcome.error.message)})`;
	return `func Test${title(params.name ?? params.uri)}(t *testing.T) {\n\ts := mcptest.New(t, newService()) // your service\n\t${call}${expect ?? ".OK()"}\n}\n`;
}

// scrubbers find values that differ from run to run, as those of mcptest do.
const scrubbers = [
	["state", /("requestState":")([^"\\]+)(")/g],
	["elicitation", /("elicitationId":")([^"\\]+)(")/g],
	["ref", /(\(ref )([0-9A-Za-z]{4,})(\))/g],
	["uuid", /(\b)([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})(\b)/g],
];

// transcript writes messages as a file that mcptest replays.
export function transcript(messages, name) {
	const names = new Map(); // value -> placeholder
	const counts = {};
	let heard = "";
	let out = `The messages of client and server that the playground recorded${name ? ` from ${name}` : ""}.\n\n`;
	let last = "";
	let asked = 0;
	const ids = new Map(); // of questions of the server
	for (const { side, message } of messages) {
		let said = message;
		if (message.id !== undefined && side === "server" && message.method !== undefined) {
			ids.set(message.id, `server-${++asked}`);
			said = { ...message, id: ids.get(message.id) };
		} else if (side === "client" && message.method === undefined && ids.has(message.id)) {
			said = { ...message, id: ids.get(message.id) };
		}
		let line = JSON.stringify(said);
		if (side === "server") {
			for (const [kind, re] of scrubbers) {
				line = line.replace(re, (whole, before, value, after) => {
					if (!names.has(value) && heard.includes(value)) return whole; // the client sent it first
					if (!names.has(value)) {
						counts[kind] = (counts[kind] ?? 0) + 1;
						names.set(value, `<${kind} ${counts[kind]}>`);
					}
					return before + names.get(value) + after;
				});
			}
			line = line.replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g, (value) => (heard.includes(value) ? value : "<time>"));
		} else {
			heard += line + "\n";
			for (const [value, placeholder] of names) line = line.replaceAll(value, placeholder);
		}
		if (side !== last) out += `-- ${side} --\n`;
		last = side;
		out += line + "\n";
	}
	return out;
}
