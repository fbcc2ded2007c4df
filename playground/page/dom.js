// dom.js makes elements, and lists that draw only what is visible.

// el makes an element. Properties that begin with "on" are listeners, data-* and aria-* are
// attributes, and null children are left out.
export function el(tag, props = {}, ...children) {
	const node = document.createElement(tag);
	for (const [name, value] of Object.entries(props)) {
		if (value === undefined || value === null || value === false) continue;
		if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
		else if (name === "class") node.className = value;
		else if (name in node && !name.includes("-") && name !== "list" && name !== "form") node[name] = value;
		else node.setAttribute(name, value === true ? "" : value);
	}
	fill(node, ...children);
	return node;
}

// fill appends children, and leaves out null.
export function fill(node, ...children) {
	node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
}

export const byID = (id) => document.getElementById(id);

let lastID = 0;
export const newID = (prefix) => `${prefix}-${++lastID}`;

// number returns a number with all its digits, or undefined.
export function number(text) {
	if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text)) return undefined;
	const value = Number(text);
	return !Number.isSafeInteger(value) && /^-?\d+$/.test(text) && JSON.rawJSON ? JSON.rawJSON(text) : value;
}

// parse reads JSON, with all digits of its numbers. It returns undefined for other texts.
export function parse(text) {
	try {
		return JSON.parse(text, (_, value, context) => (typeof value === "number" && context?.source ? number(context.source) ?? value : value));
	} catch {
		return undefined;
	}
}

// bytes writes a number of bytes for people.
export function bytes(n) {
	if (n < 1000) return `${n} B`;
	return n < 1e6 ? `${(n / 1000).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`;
}

// tokens estimates tokens from a number of characters.
export const tokens = (chars) => Math.ceil(chars / 4);

// ms writes milliseconds for people.
export function ms(n) {
	if (n < 0) return "…";
	if (n < 10) return `${n.toFixed(1)} ms`;
	return n < 10_000 ? `${Math.round(n)} ms` : `${(n / 1000).toFixed(1)} s`;
}

// A List is a listbox with rows of one height. It draws the rows that are visible. draw(row, item)
// fills a row; choose(item) is called when the user chooses one.
export class List {
	#items = [];
	#rows = new Map(); // index -> row
	#chosen = null; // key of the chosen item
	#due = false;

	constructor(root, { height, key, draw, choose }) {
		Object.assign(this, { root, height, key, draw, choose });
		this.space = el("div", { class: "space", role: "presentation" });
		root.append(this.space);
		root.tabIndex = 0;
		root.setAttribute("role", "listbox");
		root.addEventListener("scroll", () => this.#draw(), { passive: true });
		root.addEventListener("keydown", (event) => this.#keydown(event));
		// Not click: a row may be drawn anew while the button is down.
		root.addEventListener("mousedown", (event) => {
			const row = event.target.closest("[role=option]");
			if (row && event.button === 0) this.pick(Number(row.dataset.index));
		});
		new ResizeObserver(() => this.update()).observe(root);
	}

	get items() { return this.#items; }

	// set replaces the items.
	set(items) {
		this.#items = items;
		this.update();
	}

	// update draws the rows anew in the next frame.
	update() {
		if (this.#due) return;
		this.#due = true;
		requestAnimationFrame(() => {
			this.#due = false;
			for (const row of this.#rows.values()) row.remove();
			this.#rows.clear();
			this.space.style.height = `${this.#items.length * this.height}px`;
			this.#draw();
		});
	}

	// mark shows an item as the chosen one.
	mark(key) {
		this.#chosen = key;
		this.update();
	}

	// pick chooses the item at an index.
	pick(index) {
		const item = this.#items[index];
		if (item === undefined) return;
		this.#chosen = this.key(item);
		const top = index * this.height;
		if (top < this.root.scrollTop) this.root.scrollTop = top;
		else if (top + this.height > this.root.scrollTop + this.root.clientHeight) this.root.scrollTop = top + this.height - this.root.clientHeight;
		this.update();
		this.choose(item);
	}

	#draw() {
		const from = Math.max(0, Math.floor(this.root.scrollTop / this.height) - 4);
		const to = Math.min(this.#items.length, Math.ceil((this.root.scrollTop + this.root.clientHeight) / this.height) + 4);
		for (const [index, row] of this.#rows) {
			if (index >= from && index < to) continue;
			row.remove();
			this.#rows.delete(index);
		}
		this.root.removeAttribute("aria-activedescendant");
		for (let index = from; index < to; index++) {
			let row = this.#rows.get(index);
			if (!row) {
				const item = this.#items[index];
				const chosen = this.key(item) === this.#chosen;
				row = el("div", { class: "row", role: "option", id: `${this.root.id}-${index}`, "data-index": index, "aria-selected": String(chosen), "aria-setsize": this.#items.length, "aria-posinset": index + 1 });
				row.style.top = `${index * this.height}px`;
				row.style.height = `${this.height}px`;
				this.draw(row, item);
				this.#rows.set(index, row);
				this.space.append(row);
			}
			if (row.getAttribute("aria-selected") === "true") this.root.setAttribute("aria-activedescendant", row.id);
		}
	}

	#keydown(event) {
		if (event.ctrlKey || event.metaKey || event.altKey) return;
		const at = this.#items.findIndex((item) => this.key(item) === this.#chosen);
		const page = Math.max(1, Math.floor(this.root.clientHeight / this.height) - 1);
		const last = this.#items.length - 1;
		const to = { ArrowDown: at + 1, ArrowUp: Math.max(at, 1) - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: last, Enter: Math.max(at, 0) }[event.key];
		if (to === undefined) return;
		event.preventDefault();
		this.pick(Math.min(Math.max(to, 0), last));
	}
}
