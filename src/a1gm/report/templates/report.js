"use strict";
document.documentElement.classList.add("scripted");
const make = (tag, properties) => Object.assign(document.createElement(tag), properties);

// Tables sort by the column whose header is pressed, filter, and download as CSV.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const valueOf = (cell) =>
    "value" in cell.dataset
      ? cell.dataset.value === "" ? NaN : Number(cell.dataset.value)
      : cell.textContent;
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number"
      ? a - b
      : String(a).localeCompare(String(b), undefined, { numeric: true });
  // Sorting keeps the filter, and filtering the order.
  let wanted = "";
  const show = () => body.replaceChildren(...rows.filter((row) => row.textContent.toLowerCase().includes(wanted)));
  heads.forEach((head, column) => {
    if (rows[0].cells[column].classList.contains("n")) head.classList.add("n");
    head.firstChild.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      rows.sort((one, two) => {
        const a = valueOf(one.cells[column]), b = valueOf(two.cells[column]);
        // No number comes last in both directions.
        if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
        return down ? compare(b, a) : compare(a, b);
      });
      show();
    });
  });

  const tools = make("div", { className: "tools" });
  const count = make("span", {});
  const printed = make("span", { className: "printed", textContent: " (the first 15 are printed)" });
  const showCount = () => {
    const shown = body.rows.length, all = rows.length, words = all === 1 ? " line" : " lines";
    count.textContent = (shown === all ? "" : shown + " of ") + all.toLocaleString("en") + words;
    if (shown > 15) count.append(printed);
  };
  if (rows.length > 5) {
    const name = table.caption.textContent;
    const filter = make("input", { type: "search", placeholder: "Filter", ariaLabel: "Filter: " + name });
    filter.addEventListener("input", () => {
      wanted = filter.value.toLowerCase();
      show();
      showCount();
    });
    tools.append(filter);
  }
  const quoted = (value) => {
    let text = Number.isNaN(value) ? "" : String(value);
    // A spreadsheet would run a name such as "=1+1".
    if (typeof value === "string" && /^[=+@\t\r-]/.test(text) && Number.isNaN(Number(text))) text = "'" + text;
    return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  };
  const button = make("button", { type: "button", textContent: "CSV", title: "Download these lines" });
  button.addEventListener("click", () => {
    const lines = [heads.map((head) => head.textContent), ...[...body.rows].map((row) => [...row.cells].map(valueOf))];
    const text = lines.map((line) => line.map(quoted).join(",") + "\r\n").join("");
    const file = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    const name = table.caption.textContent.replace(/:.*/, "").trim().replace(/[^\w]+/g, "-").toLowerCase();
    make("a", { href: file, download: name + ".csv" }).click();
    setTimeout(() => URL.revokeObjectURL(file), 10000);
  });
  tools.append(count, button);
  showCount();
  const box = table.parentElement, listing = make("div", { className: "listing" });
  box.replaceWith(listing);
  listing.append(tools, box);
}

// The value of a cell of the heat map is shown under the mouse, at a tap, by arrow keys.
const tip = document.getElementById("tip");
for (const map of document.querySelectorAll(".heat table")) {
  const columns = [...map.tHead.rows[0].cells];
  let at = null;
  const hide = () => { at?.classList.remove("at"); at = null; tip.hidden = true; };
  const show = (cell) => {
    if (cell === at) return;
    hide();
    if (!cell || cell.tagName !== "TD" || !cell.className) return;
    at = cell;
    const { v, b } = cell.dataset;
    const what = v === undefined ? "cannot be known"
      : !cell.classList.contains("fill") ? v
      : "filled with " + v + (b === undefined ? "" : ", 95 % from " + b);
    tip.textContent = cell.parentElement.cells[0].textContent + ", " + columns[cell.cellIndex].textContent + ": " + what;
    cell.classList.add("at");
    tip.hidden = false;
    const box = cell.getBoundingClientRect(), size = tip.getBoundingClientRect();
    const left = Math.min(Math.max(4, box.left + box.width / 2 - size.width / 2), document.documentElement.clientWidth - size.width - 4);
    const top = box.top > size.height + 8 ? box.top - size.height - 6 : box.bottom + 6;
    tip.style.left = left + scrollX + "px";
    tip.style.top = top + scrollY + "px";
  };
  const box = map.parentElement;
  // Keys scroll the map under a mouse that rests: only one that moves is heeded.
  let last = "";
  map.addEventListener("pointermove", (event) => {
    const place = event.screenX + "," + event.screenY;
    if (place !== last) show(event.target);
    last = place;
  });
  map.addEventListener("click", (event) => show(event.target));
  map.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hide(); });
  box.addEventListener("blur", hide);
  box.addEventListener("keydown", (event) => {
    const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [0, 0];
    if (event.key === "Escape") hide();
    if (!down && !right) return;
    event.preventDefault();
    const rows = map.tBodies[0].rows;
    const row = at ? at.parentElement.sectionRowIndex + down : 0;
    const cell = rows[row]?.cells[at ? at.cellIndex + right : 1];
    if (cell && cell.tagName === "TD") {
      cell.scrollIntoView({ block: "nearest", inline: "nearest" });
      show(cell);
    }
  });
}
