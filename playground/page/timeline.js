// timeline.js shows the calls as the server sees them.

import { byID, bytes, el, fill, List, ms, parse, tokens } from "./dom.js";
import { events, info } from "./mcp.js";
import { code, logLine, pretty } from "./result.js";

// housekeeping are the methods that clients call by themselves.
const housekeeping = /^(ping|initialize|server|logging|subscriptions|tasks)(\/|$)|^resources\/(un)?subscribe|^events\/poll|\/list$/;
const good = new Set(["ok", "input_required"]);

// A Timeline shows the entries that the server streams.
export class Timeline {
	#entries = new Map(); // id -> entry, in the order of their beginning
	#rounds = new Map(); // ref -> ids
	#shown = null; // id of the entry in the details
	#due = false;
	#expected = null; // the call of the page whose details open when it arrives

	constructor({ headers, max }) {
		Object.assign(this, { headers, max });
		this.list = new List(byID("calls"), { height: 34, key: (entry) => entry.id, draw: (row, entry) => this.#row(row, entry), choose: (entry) => this.#open(entry.id) });
		this.filter = byID("calls-filter");
		this.filter.addEventListener("input", () => this.update());
		byID("calls-kind").addEventListener("change", () => this.update());
		byID("calls-clear").addEventListener("click", () => fetch("timeline", { method: "DELETE", headers }));
	}

	// follow shows what the server streams, and connects again if the stream ends.
	async follow() {
		for (let wait = 500; ; wait = Math.min(wait * 2, 10_000)) {
			try {
				const response = await fetch("timeline", { headers: this.headers });
				if (!response.ok) {
					byID("calls-state").textContent = await response.text();
					if (response.status === 401) return;
					throw new Error(response.statusText);
				}
				this.#clear();
				byID("calls-state").textContent = "";
				for await (const data of events(response)) {
					wait = 500;
					this.take(JSON.parse(data));
				}
			} catch (err) {
				console.debug("timeline:", err);
			}
			byID("calls-state").textContent = "The server is gone. Waiting for it…";
			await new Promise((resolve) => setTimeout(resolve, wait));
		}
	}

	// expect opens the details of the next call that the page makes.
	expect(method, name) {
		this.#expected = { method, name };
	}

	// take takes a batch of entries.
	take({ clear, entries }) {
		if (clear) this.#clear();
		for (const entry of entries) {
			if (!this.#entries.has(entry.id)) {
				this.#rounds.set(entry.ref, [...(this.#rounds.get(entry.ref) ?? []), entry.id]);
				const { method, name } = this.#expected ?? {};
				if (entry.method === method && entry.name === name && entry.client === info.name) {
					this.#expected = null;
					this.#shown = entry.id;
					this.list.mark(entry.id);
				}
			}
			this.#entries.set(entry.id, entry);
		}
		while (this.#entries.size > this.max) {
			const [id, { ref }] = this.#entries.entries().next().value;
			this.#entries.delete(id);
			this.#rounds.delete(ref);
		}
		this.update();
		const shown = this.#entries.get(this.#shown);
		if (shown && entries.some((entry) => entry.ref === shown.ref)) this.#details(shown);
	}

	#clear() {
		this.#entries.clear();
		this.#rounds.clear();
		this.#shown = null;
		byID("call").replaceChildren();
		byID("call").hidden = true;
		this.update();
	}

	// update draws the list in the next frame.
	update() {
		if (this.#due) return;
		this.#due = true;
		requestAnimationFrame(() => {
			this.#due = false;
			const words = this.filter.value.toLowerCase();
			const kind = byID("calls-kind").value;
			const items = [];
			for (const entry of this.#entries.values()) {
				const failed = entry.took >= 0 && !good.has(entry.outcome);
				if (!failed && (kind === "bad" || kind === "work" && housekeeping.test(entry.method))) continue;
				if (words && !`${entry.method} ${entry.name} ${entry.outcome} ${entry.client} ${entry.ref} ${entry.error}`.toLowerCase().includes(words)) continue;
				items.push(entry);
			}
			items.reverse();
			byID("calls-count").textContent = `${items.length}`;
			byID("calls-empty").hidden = items.length > 0;
			this.list.set(items);
		});
	}

	#row(row, entry) {
		const state = entry.took < 0 ? "open" : good.has(entry.outcome) ? "good" : "bad";
		fill(row,
			el("span", { class: `dot ${state}`, title: entry.took < 0 ? "running" : entry.outcome }),
			el("span", { class: "name" }, entry.name || entry.method, entry.name ? el("span", { class: "dim" }, ` ${entry.method}`) : null),
			entry.round ? el("span", { class: "badge" }, `round ${entry.round}`) : null,
			entry.task ? el("span", { class: "badge" }, "task") : null,
			entry.faults ? el("span", { class: "badge bad" }, `${entry.faults.length} ${entry.faults.length === 1 ? "fault" : "faults"}`) : null,
			el("span", { class: "took" }, ms(entry.took)),
		);
	}

	#open(id) {
		this.#shown = id;
		const entry = this.#entries.get(id);
		if (entry) this.#details(entry);
	}

	#details(entry) {
		const rounds = (this.#rounds.get(entry.ref) ?? [entry.id]).map((id) => this.#entries.get(id)).filter(Boolean);
		const pane = byID("call");
		pane.hidden = false;
		pane.replaceChildren(
			el("header", {}, el("h3", {}, entry.name || entry.method), el("button", { type: "button", class: "quiet", "aria-label": "close the details", onclick: () => { this.#shown = null; this.list.mark(null); pane.hidden = true; this.list.root.focus(); } }, "×")),
			...rounds.map((round) => this.#round(round, rounds.length > 1)),
		);
	}

	// round shows one round of a call.
	#round(entry, several) {
		const facts = [
			["Outcome", entry.took < 0 ? "running" : entry.outcome], ["Took", ms(entry.took)], ["Began", new Date(entry.begun).toLocaleTimeString()],
			["Method", entry.method], ["Version", entry.version], ["Client", entry.client], ["Caller", entry.principal], ["Session", entry.session], ["Task", entry.task],
			["Request", entry.request], ["Reference", entry.ref], ["Repairs", entry.repairs || ""],
			["Params", bytes(entry.in)], ["Result", entry.out < 0 ? "" : `${bytes(entry.out)}, about ${tokens(entry.out)} tokens`],
		];
		const list = el("dl", {}, facts.filter(([, value]) => value).map(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))]));
		return el("section", { class: "round" },
			several ? el("h4", {}, entry.task ? "Run of the task" : `Round ${entry.round ?? 0}`, el("span", { class: "dim" }, ` ${entry.took < 0 ? "running" : entry.outcome}`)) : null,
			entry.error ? el("p", { class: "text bad" }, entry.error) : null,
			this.#waterfall(entry),
			entry.faults ? el("table", { class: "faults" }, el("caption", {}, "Faults of the arguments"), entry.faults.map((f) => el("tr", {}, el("th", { scope: "row" }, el("code", {}, f.at || "/")), el("td", {}, f.text)))) : null,
			entry.arguments ? el("details", { open: !several || undefined }, el("summary", {}, "Arguments, without secrets"), code(pretty(entry.arguments))) : null,
			entry.cut ? el("p", { class: "dim" }, "The arguments are too long to be shown.") : null,
			several ? el("details", {}, el("summary", {}, "Facts"), list) : list,
		);
	}

	// waterfall draws the steps of a call over its time.
	#waterfall(entry) {
		const steps = (entry.steps ?? []).sort((a, b) => a.at - b.at); // those of another program may be late
		const end = Math.max(entry.took, 0.001, ...steps.map((step) => step.at + Math.max(step.took ?? 0, 0)));
		const rows = steps.map((step) => {
			const long = step.took !== undefined;
			const bar = el("span", { class: `mark k-${step.kind} ${step.error ? "bad" : ""} ${long ? "" : "point"}` });
			bar.style.left = `${(100 * step.at) / end}%`;
			bar.style.width = long ? `${(100 * (step.took < 0 ? end - step.at : step.took)) / end}%` : "";
			const label = el("span", { class: "label" }, ...this.#label(step));
			label.style.paddingLeft = `${(step.depth ?? 0) * 12}px`;
			return el("li", { "data-kind": step.kind }, label, el("span", { class: "track" }, bar), el("span", { class: "took" }, long ? ms(step.took) : `+${ms(step.at)}`),
				step.error && step.error !== entry.error ? el("span", { class: "why bad" }, step.error) : null);
		});
		if (entry.more) rows.push(el("li", { class: "dim" }, `and ${entry.more} more steps`));
		return rows.length ? el("ol", { class: "waterfall", "aria-label": "steps of the call" }, rows) : null;
	}

	#label(step) {
		switch (step.kind) {
			case "once": return [el("b", {}, "Once "), step.name, el("span", { class: "badge" }, step.kept ? "kept, not run again" : "ran")];
			case "log": return [el("b", {}, step.name), " ", logLine(parse(step.text) ?? step.text)];
			case "progress": return [el("b", {}, "Progress "), step.text];
			case "question": return [el("b", {}, "Question "), step.text || step.name];
			default: return [step.name];
		}
	}
}
