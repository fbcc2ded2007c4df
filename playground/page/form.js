// form.js makes forms from JSON schemas.

import { bytes, el, newID, number, parse } from "./dom.js";

// An editor edits one value. It has
//
//	node          its element
//	get()         the value; undefined if it is left out
//	set(value)    shows a value
//	check(path)   shows what is wrong, and returns whether nothing is
//	fault(path, text)   shows what the server found wrong; false if the path is not here

// resolve follows references within the schema, and merges what a reference stands beside.
function resolve(schema, root) {
	for (let i = 0; i < 20 && schema && typeof schema.$ref === "string" && schema.$ref.startsWith("#"); i++) {
		let at = root;
		for (const part of schema.$ref.slice(1).split("/").filter(Boolean)) at = at?.[decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~")];
		const { $ref, ...beside } = schema;
		schema = { ...at, ...beside };
	}
	return schema && typeof schema === "object" ? schema : {};
}

// kinds returns the types that a schema allows, without null.
function kinds(schema) {
	return [schema.type ?? []].flat().filter((type) => type !== "null");
}

// options returns the fixed values of a schema, or null: [{value, title}].
function options(schema) {
	if (Array.isArray(schema.enum)) return schema.enum.map((value, i) => ({ value, title: both(schema.enumNames?.[i], show(value)) }));
	const choices = schema.oneOf ?? schema.anyOf;
	if (choices?.length && choices.every((one) => one && "const" in one)) return choices.map((one) => ({ value: one.const, title: both(one.title ?? one.description, show(one.const)) }));
	return "const" in schema ? [{ value: schema.const, title: show(schema.const) }] : null;
}

const both = (title, value) => (title && title !== value ? `${title} (${value})` : value);
const show = (value) => (typeof value === "string" ? value : JSON.stringify(value));

// limits describes what a schema demands, for people.
function limits(schema) {
	const parts = [];
	const between = (least, most, unit) => {
		const word = (n) => (unit ? ` ${unit}${n === 1 ? "" : "s"}` : "");
		if (least !== undefined && most !== undefined) parts.push(`${least} to ${most}${word(most)}`);
		else if (least !== undefined) parts.push(`at least ${least}${word(least)}`);
		else if (most !== undefined) parts.push(`at most ${most}${word(most)}`);
	};
	between(schema.minimum, schema.maximum, "");
	if (schema.exclusiveMinimum !== undefined) parts.push(`more than ${schema.exclusiveMinimum}`);
	if (schema.exclusiveMaximum !== undefined) parts.push(`less than ${schema.exclusiveMaximum}`);
	between(schema.minLength, schema.maxLength, "character");
	between(schema.minItems, schema.maxItems, "item");
	if (schema.format && schema.format !== "password") parts.push(schema.format);
	if (schema.pattern) parts.push(`like ${schema.pattern}`);
	return parts.join(", ");
}

// wrong returns what is wrong with a value, or "".
function wrong(schema, value) {
	const demand = (ok, text) => (ok ? "" : text);
	if (typeof value === "string") {
		const length = [...value].length;
		return demand(schema.minLength === undefined || length >= schema.minLength, `needs at least ${schema.minLength} characters`) ||
			demand(schema.maxLength === undefined || length <= schema.maxLength, `has more than ${schema.maxLength} characters`) ||
			demand(!schema.pattern || matches(schema.pattern, value), `does not match ${schema.pattern}`);
	}
	if (typeof value === "number") {
		return demand(!kinds(schema).includes("integer") || kinds(schema).includes("number") || Number.isInteger(value), "is not a whole number") ||
			demand(schema.minimum === undefined || value >= schema.minimum, `must be at least ${schema.minimum}`) ||
			demand(schema.maximum === undefined || value <= schema.maximum, `must be at most ${schema.maximum}`) ||
			demand(schema.exclusiveMinimum === undefined || value > schema.exclusiveMinimum, `must be more than ${schema.exclusiveMinimum}`) ||
			demand(schema.exclusiveMaximum === undefined || value < schema.exclusiveMaximum, `must be less than ${schema.exclusiveMaximum}`) ||
			demand(!schema.multipleOf || Math.abs(value / schema.multipleOf - Math.round(value / schema.multipleOf)) < 1e-9, `must be a multiple of ${schema.multipleOf}`);
	}
	if (Array.isArray(value)) {
		return demand(schema.minItems === undefined || value.length >= schema.minItems, `needs at least ${schema.minItems} items`) ||
			demand(schema.maxItems === undefined || value.length <= schema.maxItems, `has more than ${schema.maxItems} items`) ||
			demand(!schema.uniqueItems || new Set(value.map((v) => JSON.stringify(v))).size === value.length, "has an item twice");
	}
	return "";
}

function matches(pattern, text) {
	try {
		return new RegExp(pattern, "u").test(text);
	} catch {
		return true; // the server knows
	}
}

// named is the title of a field, with the name that models use if that differs.
const named = ({ title = "" }, name) => (title && title !== name ? [title, el("code", { class: "dim" }, ` ${name}`)] : name);

// field is the frame of an editor: label, description, message.
function field({ schema, name, required, control, extra }) {
	const id = control.id || (control.id = newID("field"));
	const message = el("p", { class: "message", id: `${id}-message`, role: "alert" });
	const about = [schema.description, limits(schema)].filter(Boolean).join(" · ");
	const node = el("div", { class: "field" },
		name === null ? null : el("label", { htmlFor: id }, named(schema, name), required ? el("span", { class: "required", title: "required" }, " required") : null),
		control, extra ?? null,
		about ? el("p", { class: "about", id: `${id}-about` }, about) : null, message);
	if (name === null) control.setAttribute("aria-label", "item");
	control.setAttribute("aria-describedby", `${id}-about ${id}-message`);
	if (required) control.setAttribute("aria-required", "true");
	const tell = (text) => {
		message.textContent = text;
		node.classList.toggle("wrong", text !== "");
		if (text) control.setAttribute("aria-invalid", "true");
		else control.removeAttribute("aria-invalid");
		return text === "";
	};
	control.addEventListener("input", () => tell(""));
	control.addEventListener("change", () => tell(""));
	return { node, tell };
}

const here = (path, text, tell) => path.length === 0 && (tell(text), true);

// choice edits one of fixed values.
function choice(c, values) {
	const { schema, required } = c;
	const control = el("select", {},
		required && values.length === 1 ? null : el("option", { value: "" }, required ? "choose…" : "not set"),
		values.map(({ title }, i) => el("option", { value: String(i) }, title)));
	const frame = field({ ...c, control });
	const editor = {
		node: frame.node,
		get: () => (control.value === "" ? undefined : values[Number(control.value)].value),
		set(value) {
			const at = values.findIndex((one) => JSON.stringify(one.value) === JSON.stringify(value));
			control.value = at < 0 ? "" : String(at);
		},
		check: () => frame.tell(required && control.value === "" ? "is required" : ""),
		fault: (path, text) => here(path, text, frame.tell),
	};
	if (schema.default !== undefined) editor.set(schema.default);
	return editor;
}

// several edits a list of fixed values.
function several(c, values) {
	const boxes = values.map(({ title }) => el("input", { type: "checkbox", "aria-label": title }));
	const control = el("div", { class: "boxes", role: "group" }, boxes.map((box, i) => el("label", { class: "box" }, box, values[i].title)));
	const frame = field({ ...c, control });
	const get = () => values.filter((_, i) => boxes[i].checked).map((one) => one.value);
	const editor = {
		node: frame.node,
		get: () => (get().length || c.required ? get() : undefined),
		set: (value) => boxes.forEach((box, i) => { box.checked = (value ?? []).some((v) => JSON.stringify(v) === JSON.stringify(values[i].value)); }),
		check: () => frame.tell(editor.get() === undefined ? "" : wrong(c.schema, get())),
		fault: (path, text) => path.length <= 1 && here([], text, frame.tell),
	};
	if (c.schema.default !== undefined) editor.set(c.schema.default);
	return editor;
}

// text edits a string or a number.
function text(c) {
	const { schema, required, complete, name } = c;
	const types = kinds(schema);
	const numeric = types.length > 0 && types.every((type) => type === "number" || type === "integer");
	const secret = schema.writeOnly || schema.format === "password";
	const single = numeric || secret || schema.format || schema.pattern || complete || schema.maxLength <= 60;
	const control = single ? el("input", { type: secret ? "password" : schema.format === "date" ? "date" : "text", autocomplete: "off", spellcheck: false }) : el("textarea", { rows: 1, spellcheck: false });
	if (!single) { // Enter calls; Shift and Enter write a new line
		let shift = false;
		control.addEventListener("keydown", (event) => { shift = event.shiftKey; });
		control.addEventListener("beforeinput", (event) => { if (event.inputType === "insertLineBreak" && !shift) event.preventDefault(); });
	}
	if (numeric) control.inputMode = types.includes("integer") ? "numeric" : "decimal";
	if (schema.examples?.length) control.placeholder = show(schema.examples[0]);
	let extra = null;
	if (complete) {
		extra = el("datalist", { id: newID("choices") });
		control.setAttribute("list", extra.id);
		let timer;
		const ask = () => {
			clearTimeout(timer);
			timer = setTimeout(async () => {
				const found = await complete(name, control.value).catch(() => []);
				extra.replaceChildren(...found.map((value) => el("option", { value })));
			}, 120);
		};
		control.addEventListener("input", ask);
		control.addEventListener("focus", ask);
	}
	const frame = field({ ...c, control, extra });
	let touched = false; // an empty text is sent only if the user wrote it, or it is required
	control.addEventListener("input", () => { touched = true; });
	const get = () => {
		const value = control.value;
		if (numeric) return value.trim() === "" ? undefined : number(value.trim());
		return value !== "" ? value : required && touched ? "" : undefined;
	};
	const editor = {
		node: frame.node,
		get,
		set(value) {
			control.value = value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value);
			touched = value !== undefined;
		},
		check() {
			if (numeric && control.value.trim() !== "" && get() === undefined) return frame.tell("is not a number");
			const value = get();
			if (value === undefined) return frame.tell(required && (numeric || !touched) ? "is required" : "");
			return frame.tell(wrong(schema, value));
		},
		fault: (path, text) => here(path, text, frame.tell),
	};
	if (schema.default !== undefined) editor.set(schema.default);
	return editor;
}

// file edits bytes, which are base64 in JSON, as a file.
function file(c) {
	const { schema, required } = c;
	const control = el("input", { type: "file", accept: schema.contentMediaType ?? "" });
	const about = el("p", { class: "about", role: "status" });
	const frame = field({ ...c, schema: { title: schema.title, description: schema.description }, control, extra: about });
	const size = (chars) => bytes(Math.floor((chars * 3) / 4));
	let value;
	const keep = (base64) => {
		value = base64;
		about.textContent = base64 === undefined ? "" : `${size(base64.replace(/=+$/, "").length)}, as base64`;
	};
	control.addEventListener("change", () => {
		const reader = new FileReader();
		reader.addEventListener("load", () => keep(reader.result.slice(reader.result.indexOf(",") + 1)));
		if (control.files.length) reader.readAsDataURL(control.files[0]);
		else keep(undefined);
	});
	const editor = {
		node: frame.node,
		get: () => value,
		set(base64) {
			control.value = "";
			keep(base64 ?? undefined);
		},
		check: () => frame.tell(value === undefined ? (required ? "is required" : "") : value.length > schema.maxLength ? `is larger than ${size(schema.maxLength)}` : ""),
		fault: (path, text) => here(path, text, frame.tell),
	};
	if (schema.default !== undefined) editor.set(schema.default);
	return editor;
}

// raw edits any value as JSON.
export function raw(c) {
	const control = el("textarea", { class: "code", rows: c.rows ?? 2, spellcheck: false });
	control.placeholder = c.required ? "JSON" : "JSON, or empty";
	const frame = field({ ...c, control });
	const editor = {
		node: frame.node,
		get: () => parse(control.value),
		set: (value) => { control.value = value === undefined ? "" : JSON.stringify(value, null, 2); },
		check() {
			if (control.value.trim() === "") return frame.tell(c.required ? "is required" : "");
			try {
				JSON.parse(control.value);
			} catch (err) {
				return frame.tell(`is not valid JSON: ${err.message}`);
			}
			return frame.tell(wrong(c.schema, editor.get()));
		},
		fault: (path, text) => here([], path.length ? `/${path.join("/")}: ${text}` : text, frame.tell),
	};
	if (c.schema.default !== undefined) editor.set(c.schema.default);
	return editor;
}

// array edits a list.
function array(c) {
	const { schema, name, root } = c;
	const items = el("div", { class: "items" });
	const control = el("button", { type: "button", class: "quiet" }, "Add item");
	const frame = field({ ...c, control: el("div", { role: "group", tabIndex: -1 }, items, control) });
	let editors = [];
	const add = (value, focus) => {
		const editor = make(schema.items ?? {}, { name: null, required: true, root });
		if (value !== undefined) editor.set(value);
		const line = el("div", { class: "item" }, editor.node, el("button", {
			type: "button", class: "quiet remove", "aria-label": `remove an item of ${name ?? "the list"}`, onclick() {
				editors = editors.filter((one) => one !== editor);
				line.remove();
				control.focus();
			},
		}, "×"));
		editors.push(editor);
		items.append(line);
		if (focus) line.querySelector("input,textarea,select,button")?.focus();
	};
	control.addEventListener("click", () => add(undefined, true));
	const editor = {
		node: frame.node,
		get: () => (editors.length || c.required ? editors.map((one) => one.get() ?? null) : undefined),
		set(value) {
			editors = [];
			items.replaceChildren();
			for (const one of Array.isArray(value) ? value : []) add(one);
		},
		check() {
			const fine = editors.map((one) => one.check());
			return frame.tell(editor.get() === undefined ? "" : wrong(schema, editors)) && fine.every(Boolean);
		},
		fault: (path, text) => (path.length === 0 ? here(path, text, frame.tell) : editors[Number(path[0])]?.fault(path.slice(1), text) ?? false),
	};
	if (schema.default !== undefined) editor.set(schema.default);
	return editor;
}

// object edits an object with known members.
function object(c) {
	const { schema, required, root, name, complete, top } = c;
	const needs = new Set(schema.required ?? []);
	const editors = new Map();
	const body = el("div", { class: "members" });
	const fill = () => {
		if (editors.size) return;
		for (const [member, property] of Object.entries(schema.properties ?? {})) {
			const editor = make(property, { name: member, required: needs.has(member), root, complete });
			editors.set(member, editor);
			body.append(editor.node);
		}
	};
	let given = required || top;
	const get = () => {
		if (!given) return undefined;
		const value = {};
		for (const [member, editor] of editors) {
			const one = editor.get();
			if (one !== undefined) value[member] = one;
		}
		return value;
	};
	const message = el("p", { class: "message", role: "alert" });
	let node = body;
	let give = () => {};
	if (!top) {
		const button = el("button", { type: "button", class: "quiet" });
		give = (yes) => {
			given = yes;
			if (yes) fill();
			body.hidden = !yes;
			button.textContent = yes ? "Leave out" : `Add ${schema.title ?? name ?? "item"}`;
		};
		button.addEventListener("click", () => {
			give(!given);
			if (given) body.querySelector("input,textarea,select,button")?.focus();
		});
		node = el("fieldset", {}, el("legend", {}, named(schema, name ?? "item"), required ? el("span", { class: "required" }, " required") : null),
			schema.description ? el("p", { class: "about" }, schema.description) : null, body, required ? null : button, message);
	} else {
		node = el("div", {}, body, message);
	}
	if (given) fill();
	give(given);
	const editor = {
		node,
		get,
		set(value) {
			give(top || value !== undefined);
			for (const [member, one] of editors) one.set(value?.[member]);
		},
		check() {
			message.textContent = "";
			return !given || [...editors.values()].map((one) => one.check()).every(Boolean);
		},
		fault(path, text) {
			if (path.length && editors.has(path[0])) return editors.get(path[0]).fault(path.slice(1), text);
			message.textContent = path.length ? `/${path.join("/")}: ${text}` : text;
			return true;
		},
	};
	if (schema.default !== undefined && !top) editor.set(schema.default);
	return editor;
}

// variant edits one of several shapes.
function variant(c, shapes) {
	const control = el("select", {}, shapes.map((shape, i) => el("option", { value: String(i) }, titleOf(shape, i))));
	const inside = el("div", { class: "variant" });
	const frame = field({ ...c, schema: { title: c.schema.title, description: c.schema.description }, control, extra: inside });
	let editor;
	const use = (at, value) => {
		control.value = String(at);
		editor = make(shapes[at], { ...c, name: c.name ?? "value", required: c.required });
		if (value !== undefined) editor.set(value);
		inside.replaceChildren(editor.node);
	};
	control.addEventListener("change", () => use(Number(control.value)));
	use(0, c.schema.default);
	return {
		node: frame.node,
		get: () => editor.get(),
		set: (value) => use(Math.max(0, shapes.findIndex((shape) => fits(shape, value))), value),
		check: () => editor.check(),
		fault: (path, text) => editor.fault(path, text),
	};
}

function titleOf(shape, i) {
	const fixed = Object.entries(shape.properties ?? {}).find(([, p]) => p && "const" in p);
	return shape.title ?? (fixed ? show(fixed[1].const) : kinds(shape).join(" or ") || `shape ${i + 1}`);
}

// fits reports whether a value looks like one of a shape: by its type and its fixed members.
function fits(shape, value) {
	const type = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
	const types = kinds(shape);
	if (types.length && !types.includes(type) && !(type === "number" && types.includes("integer"))) return false;
	return Object.entries(shape.properties ?? {}).every(([member, p]) => !p || !("const" in p) || value?.[member] === p.const);
}

// make returns the editor of a schema.
export function make(schema, c) {
	schema = resolve(schema, c.root);
	const shapes = (schema.oneOf ?? schema.anyOf)?.map((shape) => resolve(shape, c.root)).filter((shape) => shape.type !== "null");
	if (shapes?.length === 1 && !("const" in shapes[0])) schema = { ...schema, ...shapes[0], oneOf: undefined, anyOf: undefined };
	c = { ...c, schema };
	const fixed = options(schema);
	if (fixed) return choice(c, fixed);
	if (shapes?.length > 1) return variant(c, shapes);
	const types = kinds(schema);
	if (types.length === 1) {
		switch (types[0]) {
			case "boolean": return choice(c, [{ value: true, title: "true" }, { value: false, title: "false" }]);
			case "array": {
				const items = resolve(schema.items, c.root);
				const values = options(items);
				if (Array.isArray(schema.prefixItems)) return raw(c);
				return values ? several(c, values) : array(c);
			}
			case "object": return schema.properties ? object(c) : raw(c);
			case "string": return schema.contentEncoding === "base64" ? file(c) : text(c);
			case "number": case "integer": return text(c);
		}
	}
	if (types.length && types.every((type) => type === "number" || type === "integer")) return text(c);
	return raw(c);
}

// form returns the editor of the arguments of a tool, of a prompt or of a question.
export function form(schema, { complete } = {}) {
	schema = resolve(schema, schema);
	if (!schema.properties && schema.type === "object" && schema.additionalProperties !== false && !complete) return raw({ schema, name: "arguments", required: false, root: schema, rows: 6 });
	return object({ schema: { ...schema, properties: schema.properties ?? {} }, root: schema, required: true, name: "arguments", complete, top: true });
}
