"use strict";
// Sort a table by the column whose header is pressed; again for the other direction.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent;
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") {
      // Not-a-number comes last in both directions.
      if (Number.isNaN(a) || Number.isNaN(b)) return null;
      return a - b;
    }
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  };
  heads.forEach((head, column) => {
    const first = body.rows[0];
    if (first && first.cells[column].classList.contains("n")) head.classList.add("n");
    head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows];
      rows.sort((one, two) => {
        const a = valueOf(one, column);
        const b = valueOf(two, column);
        const order = compare(a, b);
        if (order === null) return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
        return down ? -order : order;
      });
      body.append(...rows);
    });
  });
}
