// Sorting and filtering for the tables drawn from facts. The tables are whole without it.
"use strict";

for (const box of document.querySelectorAll(".facts-table")) {
  const table = box.querySelector("table");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  rows.forEach((row, index) => { row.dataset.place = index; });
  makeSortable(table, body, rows);
  if (rows.length > 12) makeFilter(box, rows);
}

function makeSortable(table, body, rows) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sign = down ? -1 : 1;
      const sorted = rows.map((row) => [keyOf(row, column), row]);
      sorted.sort(([one, a], [other, b]) => sign * compare(one, other) || a.dataset.place - b.dataset.place);
      body.append(...sorted.map(([, row]) => row));
    });
  });
}

// A number where the cell carries one; "–" and cells that are not there come last in ascending order.
function keyOf(row, column) {
  const cell = row.cells[column];
  if (!cell) return "\uffff";
  if (cell.dataset.sort !== undefined) return Number(cell.dataset.sort);
  const text = cell.textContent.trim();
  return text === "–" ? "\uffff" : text.toLowerCase();
}

function compare(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one) < String(other) ? -1 : String(one) > String(other) ? 1 : 0;
}

function makeFilter(box, rows) {
  const tools = document.createElement("div");
  tools.className = "facts-tools";
  const search = document.createElement("input");
  search.type = "search";
  search.autocomplete = "off";
  search.spellcheck = false;
  tools.append(labelled("Name contains", search));
  const choices = [];
  if (box.dataset.filters) {
    const options = box.dataset.filters.split("|").map((text) => [text.slice(0, text.indexOf("=")), text.slice(text.indexOf("=") + 1)]);
    for (const label of ["Only what", "and"]) {
      const select = document.createElement("select");
      select.append(new Option("any", ""), ...options.map(([key, text]) => new Option(text, key)));
      choices.push(select);
      tools.append(labelled(label, select));
    }
  }
  const count = document.createElement("p");
  count.setAttribute("role", "status");
  tools.append(count);
  box.prepend(tools);

  const texts = rows.map((row) => row.dataset.name.toLowerCase());
  const facts = rows.map((row) => new Set(row.dataset.has.split(" ")));
  function update() {
    const wanted = search.value.trim().toLowerCase();
    const keys = choices.map((select) => select.value).filter(Boolean);
    let shown = 0;
    rows.forEach((row, index) => {
      row.hidden = !(texts[index].includes(wanted) && keys.every((key) => facts[index].has(key)));
      shown += !row.hidden;
    });
    count.textContent = shown === rows.length ? `${shown} rows` : `${shown} of ${rows.length} rows`;
  }
  search.addEventListener("input", update);
  for (const select of choices) select.addEventListener("change", update);
  update();
}

function labelled(text, control) {
  const label = document.createElement("label");
  label.append(text, control);
  return label;
}
