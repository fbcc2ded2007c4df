// The page of the board: it draws what a tool returns, and calls tools when the user drags a card.
const columns = ["todo", "doing", "done"];
const byID = (id) => document.getElementById(id);

// docs:begin page

const app = mcpApp.connect({
	name: "board",
	version: "1.0.0",
	onResult: (result) => draw(mcpApp.value(result).cards),
});

// change calls a tool, draws the board that it returns, and tells the model what the user did.
async function change(tool, args, done) {
	try {
		const { cards } = mcpApp.value(await app.callTool(tool, args));
		draw(cards);
		byID("status").textContent = "";
		await app.updateContext(`The user ${done}. The board is now: ${JSON.stringify(cards)}`);
	} catch (err) {
		byID("status").textContent = err.message;
	}
}

// docs:end page

function element(tag, properties, ...children) {
	const e = Object.assign(document.createElement(tag), properties);
	e.append(...children);
	return e;
}

function draw(cards) {
	const focused = document.activeElement?.id;
	byID("board").replaceChildren(...columns.map((name) => {
		const inside = cards.filter((card) => card.column === name).map((card) => {
			const e = element("div", { className: "card", id: `card-${card.id}`, tabIndex: 0, textContent: card.title });
			e.dataset.id = card.id;
			return e;
		});
		return element("section", { className: "column", id: name }, element("h2", { textContent: name }), ...inside);
	}));
	if (focused) byID(focused)?.focus();
}

// place returns the column at a point, and the card there that is not the dragged one.
function place(x, y) {
	const at = document.elementFromPoint(x, y);
	return { column: at?.closest(".column"), card: at?.closest(".card") };
}

function mark(...marked) {
	document.querySelectorAll(".over").forEach((e) => e.classList.remove("over"));
	marked.forEach((e) => e?.classList.add("over"));
}

let drag = null; // { card, x, y, pointer } while the user drags

byID("board").addEventListener("pointerdown", (event) => {
	const card = event.target.closest(".card");
	if (!card || event.button !== 0) return;
	event.preventDefault();
	card.focus();
	drag = { card, x: event.clientX, y: event.clientY, pointer: event.pointerId };
});

addEventListener("pointermove", (event) => {
	if (event.pointerId !== drag?.pointer) return;
	drag.card.classList.add("dragged"); // not before it moves: a click needs the card below the pointer
	drag.card.style.transform = `translate(${event.clientX - drag.x}px, ${event.clientY - drag.y}px)`;
	const { column, card } = place(event.clientX, event.clientY);
	mark(column, card);
});

function drop(event) {
	if (event.pointerId !== drag?.pointer) return;
	const { card } = drag;
	drag = null;
	const to = place(event.clientX, event.clientY);
	mark();
	card.classList.remove("dragged");
	card.style.transform = "";
	if (event.type !== "pointerup" || !to.column || to.card === card) return;
	const args = { id: Number(card.dataset.id), to: to.column.id };
	if (to.card) args.before = Number(to.card.dataset.id);
	else if (card.closest(".column") === to.column && !card.nextElementSibling) return; // it is there already
	change("move_card", args, `moved the card ${card.dataset.id} to ${to.column.id}`);
}
addEventListener("pointerup", drop);
addEventListener("pointercancel", drop);

// With the keyboard, the arrows move the focused card to the next column.
byID("board").addEventListener("keydown", (event) => {
	const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
	const card = event.target.closest(".card");
	const to = step && card && columns[columns.indexOf(card.closest(".column").id) + step];
	if (!to) return;
	event.preventDefault();
	change("move_card", { id: Number(card.dataset.id), to }, `moved the card ${card.dataset.id} to ${to}`);
});

byID("board").addEventListener("dblclick", (event) => {
	const card = event.target.closest(".card");
	if (!card) return;
	const input = element("input", { value: card.textContent });
	input.addEventListener("keydown", (key) => {
		key.stopPropagation();
		if (key.key === "Enter") change("rename", { id: Number(card.dataset.id), title: input.value }, `renamed the card ${card.dataset.id}`);
	});
	input.addEventListener("pointerdown", (pointer) => pointer.stopPropagation());
	card.replaceChildren(input);
	input.focus();
});

function add() {
	const title = byID("title").value;
	byID("title").value = "";
	change("add_card", { title }, `added the card ${title}`);
}
byID("add").addEventListener("click", add);
byID("title").addEventListener("keydown", (event) => event.key === "Enter" && add());
