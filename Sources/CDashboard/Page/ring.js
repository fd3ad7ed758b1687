// Who owns how much: a wide ring of shares, and around it the slots as they really lie.
class Ring {
  // Beyond this many nodes labels would collide; then the members' list names each colour.
  static #labelsMax = 14;
  static #labelLength = 11;

  constructor() {
    this.container = Dom.find("ring");
    this.note = Dom.find("ring-note");
    this.fenced = false;
    this.lit = null;
    this.width = 0;
    new ResizeObserver(([entry]) => {
      const width = Math.floor(entry.contentRect.width);
      if (width === this.width) return;
      this.width = width;
      if (this.shown) this.show(...this.shown);
    }).observe(this.container);
  }

  // Drawn in the pixels there are, so that the labels keep their size on a narrow screen.
  #measure() {
    const outer = Math.max(36, Math.min(100, (this.width - 216) / 2));
    const radius = { inner: outer * 0.66, outer, bandInner: outer + 6, bandOuter: outer + 13, label: outer + 23 };
    this.radius = radius;
    // Labels of more lines than usual make it higher, see #labels.
    this.size = { width: this.width, height: Math.ceil(2 * (radius.bandOuter + 36)) };
  }

  show({ slots, members, strip }, known, fenced) {
    this.shown = [{ slots, members, strip }, known, fenced];
    if (this.width === 0) return;
    this.#measure();
    this.states = new Map(known.map((member) => [member.node, member]));
    this.fenced = fenced;
    const { width, height } = this.size;
    // This node's arc begins at the top: its label, the longest, then has the room at the side.
    const from = Math.max(0, members.findIndex((member) => member.node === Nodes.self));
    const turned = [...members.slice(from), ...members.slice(0, from)];
    const { labels, top, bottom } = this.#labels(turned);
    const frame = { width, height: bottom - top, viewBox: `0 ${top} ${width} ${bottom - top}` };
    this.svg = Dom.draw("svg", { ...frame, role: "img", "aria-label": this.#words(members) });
    this.svg.append(this.#hatch(), ...this.#band(members, strip), ...this.#arcs(turned), ...labels);
    this.middle = [
      Dom.draw("text", {
        class: "ring-count", x: width / 2, y: height / 2 + 2, "text-anchor": "middle",
        // Six characters fit into the hole.
        "font-size": Math.min(26, Math.floor(this.radius.inner * 0.42)),
      }),
      Dom.draw("text", { class: "ring-words", x: width / 2, y: height / 2 + 22, "text-anchor": "middle" }),
    ];
    this.svg.append(...this.middle);
    this.rest = members.length === 1 ? [Ring.#label(members[0].node), "owns all"] : [String(members.length), "nodes"];
    this.shares = new Map(members.map((member) => [member.node, member.share]));
    this.light(this.lit);
    this.container.replaceChildren(this.svg);
    this.#offRing(members, slots);
  }

  // Picks one node out, while the reader points at it or focuses it elsewhere.
  light(id) {
    this.lit = this.shares?.has(id) ? id : null;
    if (!this.svg) return;
    const [first, second] = this.lit ? [Format.percent(this.shares.get(id)), Ring.#label(id)] : this.rest;
    Dom.text(this.middle[0], first);
    Dom.text(this.middle[1], second);
    for (const part of this.svg.querySelectorAll("[data-node]")) {
      part.classList.toggle("dim", this.lit !== null && part.dataset.node !== this.lit);
    }
  }

  // At the side of the ring there is room for a short name; ids are shorter than cut names, and distinct.
  static #label(id) {
    const name = Nodes.name(id);
    return name.length > Ring.#labelLength ? Nodes.short(id) : name;
  }

  #state(id) {
    const member = this.states.get(id);
    return member ? Nodes.state(member, this.fenced) : null;
  }

  #at(radius, turn) {
    const angle = (turn - 0.25) * 2 * Math.PI;
    return [this.size.width / 2 + radius * Math.cos(angle), this.size.height / 2 + radius * Math.sin(angle)];
  }

  // A full turn has no two ends, so it is drawn as two halves.
  #sector(from, to, inner, outer) {
    if (to - from > 0.9999) {
      return this.#sector(0, 0.5, inner, outer) + this.#sector(0.5, 0.99999, inner, outer);
    }
    const long = to - from > 0.5 ? 1 : 0;
    const place = (radius, turn) => this.#at(radius, turn).map((value) => value.toFixed(2)).join(" ");
    return `M${place(outer, from)}A${outer} ${outer} 0 ${long} 1 ${place(outer, to)}`
      + `L${place(inner, to)}A${inner} ${inner} 0 ${long} 0 ${place(inner, from)}Z`;
  }

  #hatch() {
    return Dom.draw("defs", {}, Dom.draw("pattern", {
      id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)",
    }, Dom.draw("rect", { class: "hatch", width: 3, height: 6 })));
  }

  #arcs(members) {
    const { inner, outer } = this.radius;
    const gap = members.length === 1 ? 0 : Math.min(0.0025, 0.1 / members.length);
    let turn = 0;
    return members.flatMap(({ node, share }) => {
      const d = this.#sector(turn + gap / 2, Math.max(turn + gap / 2, turn + share - gap / 2), inner, outer);
      turn += share;
      const state = this.#state(node);
      const arc = Dom.draw("path", { class: `arc ${Nodes.colour(node)}`, d, "data-node": node });
      if (!state || state.tone === "good") return [arc];
      return [arc, Dom.draw("path", { class: "arc-hatch", d, fill: "url(#hatch)", "data-node": node })];
    });
  }

  // One path for each node, of all its runs: 256 nodes are 256 paths, not 360 elements.
  #band(members, strip) {
    const { bandInner, bandOuter } = this.radius;
    const paths = new Map();
    for (let start = 0; start < strip.length;) {
      let end = start + 1;
      while (end < strip.length && strip[end] === strip[start]) end += 1;
      const run = this.#sector(start / strip.length, end / strip.length, bandInner, bandOuter);
      paths.set(strip[start], (paths.get(strip[start]) ?? "") + run);
      start = end;
    }
    return [...paths].filter(([index]) => members[index]).map(([index, d]) =>
      Dom.draw("path", { class: `band ${Nodes.colour(members[index].node)}`, d, "data-node": members[index].node }));
  }

  // The labels, and from where to where the drawing reaches with them.
  #labels(members) {
    let [top, bottom] = [0, this.size.height];
    if (members.length === 1 || members.length > Ring.#labelsMax) return { labels: [], top, bottom };
    let turn = 0;
    const places = members.map(({ node, share }) => {
      const [x, y] = this.#at(this.radius.label, turn + share / 2);
      turn += share;
      return { node, share, x, y, right: x >= this.size.width / 2 };
    });
    for (const right of [true, false]) this.#spread(places.filter((place) => place.right === right));
    const labels = places.map(({ node, share, x, y, right }) => {
      const state = this.#state(node);
      const lines = [["id", Ring.#label(node)], ["share", Format.percent(share)]];
      if (state && state.tone !== "good") lines.push(["share", state.word]);
      if (node === Nodes.self) lines.push(["self", "this node"]);
      // Above the middle a label grows upwards, below it downwards: away from the ring.
      const lean = (y - this.size.height / 2) / this.radius.label;
      const first = Math.round(y + 4 + (lean - 1) * (lines.length - 1) * 7);
      top = Math.min(top, first - 14);
      bottom = Math.max(bottom, first + 14 * (lines.length - 1) + 6);
      const anchor = Math.abs(x - this.size.width / 2) < 30 ? "middle" : right ? "start" : "end";
      return Dom.draw("text", { class: "label", "text-anchor": anchor, "data-node": node },
        ...lines.map(([look, text], index) =>
          Dom.draw("tspan", { class: `label-${look}`, x, y: first + 14 * index }, text)));
    });
    return { labels, top, bottom };
  }

  // Pushes labels of one side apart downwards, then back up from the lower edge.
  #spread(labels) {
    const apart = labels.length > 5 ? 32 : 46;
    labels.sort((one, other) => one.y - other.y);
    for (let index = 1; index < labels.length; index += 1) {
      labels[index].y = Math.max(labels[index].y, labels[index - 1].y + apart);
    }
    let floor = this.size.height - 18;
    for (const label of labels.toReversed()) {
      label.y = Math.max(12, Math.min(label.y, floor));
      floor = label.y - apart;
    }
  }

  #words(members) {
    const named = members.slice(0, 12).map(({ node, share }) => {
      const state = this.#state(node);
      return `${Nodes.name(node)} ${Format.percent(share)}${state && state.tone !== "good" ? `, ${state.word}` : ""}`;
    });
    const more = members.length > 12 ? `; and ${members.length - 12} more, listed under Members` : "";
    return `Ring of ${Format.plural(members.length, "node")}: ${named.join("; ")}${more}`;
  }

  // A dead or draining node owns nothing, so the ring cannot show it: words do.
  #offRing(members, slots) {
    const on = new Set(members.map((member) => member.node));
    const off = [...this.states.values()].filter((member) => !on.has(member.node) && member.state !== "left");
    if (off.length === 0) {
      const all = this.states.size > 0 ? "; every member is on the ring" : "";
      this.note.replaceChildren(`${Format.count(slots)} slots${all}.`);
      return;
    }
    const shown = off.slice(0, 6).flatMap((member) => [
      Dom.make("span", { class: "off" },
        `${Nodes.name(member.node)} `, Nodes.stateLabel(Nodes.state(member, this.fenced))),
      " ",
    ]);
    const more = off.length > 6 ? `and ${off.length - 6} more` : "";
    this.note.replaceChildren("Off the ring: ", ...shown, more);
  }
}
