// A table whose rows are kept by key and rewritten in place, so that focus and selection survive each update. On a
// narrow screen each row is a card; the roles are written out, so that it stays a table to a screen reader.
class Rows {
  // columns: names; of a name with a leading "#" the cells are figures. The spec says of an item its key, its cells
  // (each an array of children, the first for the header), and the counters whose change in the last minute they need.
  constructor(container, label, columns, spec) {
    this.spec = spec;
    this.names = columns.map((name) => name.replace("#", ""));
    this.looks = columns.map((name) => (name.startsWith("#") ? "number" : null));
    this.rows = new Map();
    this.body = Dom.make("tbody", { role: "rowgroup" });
    const heads = this.names.map((name, index) =>
      Dom.make("th", { role: "columnheader", scope: "col", class: this.looks[index] }, name));
    this.region = Dom.make("div", { class: "scroll rows", tabindex: 0, role: "region", "aria-label": label },
      Dom.make("table", { role: "table" },
        Dom.make("caption", { class: "unseen" }, label),
        Dom.make("thead", { role: "rowgroup" }, Dom.make("tr", { role: "row" }, ...heads)),
        this.body));
    container.append(this.region);
  }

  show(items) {
    this.region.classList.toggle("many", items.length > 8);
    const present = new Set(items.map(this.spec.key));
    for (const [key, row] of this.rows) {
      if (present.has(key)) continue;
      row.element.remove();
      this.rows.delete(key);
    }
    const elements = items.map((item) => this.#fill(item));
    if (elements.every((element, index) => this.body.children[index] === element)) return;
    // Moving an element takes the focus from it: moved only when the order has changed, and the focus given back.
    const focused = document.activeElement;
    this.body.replaceChildren(...elements);
    if (this.body.contains(focused)) focused.focus();
  }

  #fill(item) {
    const key = this.spec.key(item);
    let row = this.rows.get(key);
    if (!row) {
      row = this.#add(item);
      this.rows.set(key, row);
    }
    const counters = this.spec.counters?.(item) ?? null;
    if (counters) row.recent.add(performance.now() - (this.spec.age?.(item) ?? 0), counters);
    const cells = this.spec.cells(item, counters && row.recent.change());
    cells.forEach((children, index) => Dom.renew(row.cells[index], ...children));
    return row.element;
  }

  #add(item) {
    const cells = this.names.map((name, index) => (index === 0
      ? Dom.make("th", { role: "rowheader", scope: "row" })
      : Dom.make("td", { role: "cell", "data-name": name, class: this.looks[index] })));
    const element = Dom.make("tr", { role: "row" }, ...cells);
    this.spec.added?.(element, item);
    return { element, cells, recent: new Recent() };
  }
}
