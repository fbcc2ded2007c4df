// result.js shows results.

import { bytes, el, ms, parse, tokens } from "./dom.js";
import { RPCError } from "./mcp.js";

// pretty writes a value as JSON for people.
export const pretty = (value) => JSON.stringify(value, null, 2);

// code shows text in a block.
export const code = (text) => el("pre", { tabIndex: 0 }, text);

// laidOut returns an object or array of JSON with indents; undefined for other texts.
function laidOut(text) {
	const value = /^\s*[[{]/.test(text) ? parse(text) : undefined;
	return value && pretty(value);
}

// logLine writes the data of a log record on a line: "order taken customer=Ann".
export function logLine(data) {
	if (typeof data === "string") return data;
	if (data === null || typeof data !== "object" || Array.isArray(data)) return JSON.stringify(data);
	const { msg, ...rest } = data;
	const show = (value) => (typeof value === "string" ? value : JSON.stringify(value));
	return [msg === undefined ? "" : show(msg), ...Object.entries(rest).map(([name, value]) => `${name}=${show(value)}`)].filter(Boolean).join(" ");
}

const size = (base64) => Math.floor((base64.length * 3) / 4);

// link is a link to another site. Other links are text.
function link(uri, text = uri) {
	if (!/^(https?|mailto):/i.test(uri)) return el("code", {}, text);
	return el("a", { href: uri, target: "_blank", rel: "noopener noreferrer" }, text);
}

// block shows a content block. read(uri) reads a resource.
function block(content, { read }) {
	const { type, mimeType = "", data } = content;
	switch (type) {
		case "text":
			return laidOut(content.text) ? code(laidOut(content.text)) : el("div", { class: "text" }, content.text);
		case "image":
			return el("figure", {}, el("img", { src: `data:${mimeType};base64,${data}`, alt: `image of the type ${mimeType}` }), el("figcaption", {}, `${mimeType}, ${bytes(size(data))}`));
		case "audio":
			return el("figure", {}, el("audio", { controls: true, src: `data:${mimeType};base64,${data}` }), el("figcaption", {}, `${mimeType}, ${bytes(size(data))}`));
		case "resource_link":
			return el("div", { class: "link" }, el("strong", {}, content.title ?? content.name ?? content.uri), " ", link(content.uri),
				el("span", { class: "dim" }, [mimeType, content.size === undefined ? "" : bytes(content.size)].filter(Boolean).join(", ")),
				read ? el("button", { type: "button", class: "quiet", onclick: () => read(content.uri) }, "Read") : null,
				content.description ? el("p", { class: "about" }, content.description) : null);
		case "resource":
			return contents(content.resource, { read });
		default:
			return code(pretty(content));
	}
}

// contents shows the contents of a resource.
export function contents({ uri, mimeType = "", text, blob }) {
	const head = el("p", { class: "about" }, el("code", {}, uri), ` ${mimeType}`);
	if (text !== undefined && mimeType !== "image/svg+xml") return el("div", { class: "resource" }, head, code(laidOut(text) ?? text));
	if (text !== undefined) blob = btoa(Array.from(new TextEncoder().encode(text), (b) => String.fromCharCode(b)).join(""));
	if (mimeType.startsWith("image/")) return el("div", { class: "resource" }, head, el("img", { src: `data:${mimeType};base64,${blob}`, alt: uri }));
	if (mimeType.startsWith("audio/")) return el("div", { class: "resource" }, head, el("audio", { controls: true, src: `data:${mimeType};base64,${blob}` }));
	const save = async () => {
		const raw = Uint8Array.from(atob(blob), (c) => c.charCodeAt(0));
		download(uri.split("/").pop() || "file", new Blob([raw], { type: mimeType }));
	};
	return el("div", { class: "resource" }, head, el("button", { type: "button", class: "quiet", onclick: save }, `Save ${bytes(size(blob))}`));
}

// download offers a file to the user.
export function download(name, blob) {
	const a = el("a", { href: URL.createObjectURL(blob), download: name });
	document.body.append(a);
	a.click();
	a.remove();
	setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
}

// result shows the result of a request.
export function result(value, { took, read } = {}) {
	const chars = JSON.stringify(value).length;
	const about = [value.isError ? "tool error" : "", took === undefined ? "" : ms(took), bytes(chars), `about ${tokens(chars)} tokens`];
	const parts = [];
	for (const one of value.content ?? []) parts.push(block(one, { read }));
	for (const one of value.contents ?? []) parts.push(contents(one, { read }));
	for (const { role, content } of value.messages ?? []) parts.push(el("div", { class: "said" }, el("span", { class: "role" }, role), [content].flat().map((one) => block(one, { read }))));
	if (value.structuredContent !== undefined && laidOut(textOf(value)) !== pretty(value.structuredContent)) {
		parts.push(el("details", { open: !(value.content ?? []).length || undefined }, el("summary", {}, "Structured content"), code(pretty(value.structuredContent))));
	}
	if (parts.length === 0) parts.push(el("p", { class: "dim" }, "The result is empty."));
	parts.push(el("details", {}, el("summary", {}, "JSON"), code(pretty(value))));
	return el("div", { class: value.isError ? "result error" : "result" }, el("p", { class: "facts" }, about.filter(Boolean).join(" · ")), parts);
}

// failure shows an error.
export function failure(err, { took } = {}) {
	const about = [err instanceof RPCError ? `protocol error ${err.code}` : "error", took === undefined ? "" : ms(took)];
	return el("div", { class: "result error" }, el("p", { class: "facts" }, about.filter(Boolean).join(" · ")), el("div", { class: "text" }, err.message),
		err.data === undefined ? null : el("details", {}, el("summary", {}, "Data"), code(pretty(err.data))));
}

// textOf returns the texts of a result.
export const textOf = (value) => (value.content ?? []).filter((one) => one.type === "text").map((one) => one.text).join("\n");
