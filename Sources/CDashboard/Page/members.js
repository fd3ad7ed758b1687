// The members' table. Rows are kept and rewritten in place, so that focus and selection survive each second.
class Members {
  static #columns = ["Address", "State", "Voter", "Connected", "Contact", "Share", "Lag"];

  constructor(ring) {
    this.ring = ring;
    this.body = Dom.find("member-rows");
    this.rows = new Map();
  }

  show(members, fenced) {
    Dom.find("members-region").hidden = members.length === 0;
    Dom.find("members-region").classList.toggle("many", members.length > 8);
    Dom.find("members-empty").hidden = members.length > 0;
    const counted = members.filter((member) => member.counted).length;
    const majority = Math.floor(counted / 2) + 1;
    Dom.put("members-note", members.length === 0 ? "" : `${Format.plural(counted, "voter")}; a majority is ${majority}`);
    const order = members.toSorted((one, other) =>
      Members.#rank(one, fenced) - Members.#rank(other, fenced) || (one.node < other.node ? -1 : 1));
    const present = new Set(order.map((member) => member.node));
    for (const [id, row] of this.rows) {
      if (present.has(id)) continue;
      row.element.remove();
      this.rows.delete(id);
    }
    for (const member of order) this.#fill(this.rows.get(member.node) ?? this.#add(member), member, fenced);
    this.#arrange(order);
  }

  // This node first, then what needs attention, then the rest by id.
  static #rank(member, fenced) {
    if (member.self) return 0;
    return { bad: 1, warn: 2, good: 3, faint: 4 }[Nodes.state(member, fenced).tone];
  }

  #add({ node }) {
    const cells = Members.#columns.map((name) => Dom.make("td", { role: "cell", "data-name": name }));
    const element = Dom.make("tr", { role: "row" },
      Dom.make("th", { role: "rowheader", scope: "row" }, Nodes.swatch(node), Nodes.button(node),
        node === Nodes.self ? Dom.make("span", { class: "self" }, "this node") : null),
      ...cells);
    for (const kind of ["pointerenter", "focusin"]) element.addEventListener(kind, () => this.ring.light(node));
    for (const kind of ["pointerleave", "focusout"]) element.addEventListener(kind, () => this.ring.light(null));
    const row = { element, cells, state: null };
    this.rows.set(node, row);
    return row;
  }

  #fill(row, member, fenced) {
    const [address, stateCell, counted, connected, contact, share, lag] = row.cells;
    const state = Nodes.state(member, fenced);
    if (row.state !== state.word) {
      stateCell.replaceChildren(Nodes.stateLabel(state));
      row.state = state.word;
    }
    Dom.text(address, member.address);
    Dom.text(counted, member.counted ? "yes" : "no");
    Dom.text(connected, member.self ? "–" : member.connected ? "yes" : "no");
    Dom.text(contact, member.self ? "–" : Format.ago(member.contact_ms_ago));
    Dom.text(share, member.ring_share > 0 ? Format.percent(member.ring_share) : "–");
    Dom.text(lag, member.self ? "–" : Members.#lag(member.lag_records));
  }

  static #lag(records) {
    if (records === null) return "unknown";
    return records === 0 ? "none" : Format.plural(records, "purge");
  }

  // Moving an element takes the focus from it: moved only when the order has changed, and the focus given back.
  #arrange(order) {
    const wanted = order.map((member) => this.rows.get(member.node).element);
    if (wanted.every((element, index) => this.body.children[index] === element)) return;
    const focused = document.activeElement;
    this.body.replaceChildren(...wanted);
    if (this.body.contains(focused)) focused.focus();
  }
}
