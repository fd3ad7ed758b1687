// The top of the page: the worst of what the node knows to be wrong, in words, and the rest below it. The same in the
// tab's title, for the time when the page is not seen.
class State {
  // More than these are folded.
  static #shown = 5;
  static #looks = { critical: ["bad", "cross"], warning: ["warn", "triangle"], ready: ["good", "full"] };
  static #marks = { critical: "✕", warning: "▲", ready: "●" };

  constructor(retry, unlock) {
    this.retry = retry;
    this.unlock = unlock;
    this.notices = new Map();
    this.rows = new Map();
    this.list = Dom.find("conditions");
  }

  status({ node, version, role, sites }) {
    if (this.node !== node) {
      this.node = node;
      Dom.find("node-id").replaceChildren(Nodes.button(node, node));
    }
    Dom.put("version", version);
    Dom.put("role", role);
    Dom.put("sites", sites.length ? Format.list(sites.map((site) => (site === "*" ? "any host" : site))) : "none");
    this.#rename();
  }

  show({ at_ms, cluster }, hitRatio) {
    this.ratio = hitRatio;
    Dom.put("uptime", Format.seconds(at_ms));
    Dom.put("cluster-count", cluster ? `${cluster.members_alive} of ${cluster.members_counted} alive` : "one node alone");
    this.#rename();
  }

  conditions({ state, conditions }) {
    const [worst] = conditions;
    const word = worst ? State.#title(worst.name) : "Ready";
    const [tone, icon] = State.#looks[state] ?? State.#looks.warning;
    const chip = Dom.find("state");
    chip.className = `chip ${tone}`;
    Dom.renew(chip, Dom.icon(icon), word);
    Dom.find("top").dataset.state = state;
    Dom.find("healthy").hidden = conditions.length > 0;
    const present = new Map();
    for (const condition of conditions) {
      const key = `${condition.name} ${condition.subject}`;
      const row = this.rows.get(key) ?? State.#row();
      State.#fill(row, condition, condition === worst);
      // The worst is shown in full; a reader may open the others.
      if (condition === worst && this.worst !== key) row.element.firstChild.open = true;
      if (condition === worst) this.worst = key;
      present.set(key, row);
    }
    this.rows = present;
    const elements = [...present.values()].map(({ element }) => element);
    const [shown, rest] = [elements.slice(0, State.#shown), elements.slice(State.#shown)];
    Dom.find("more").hidden = rest.length === 0;
    Dom.put("more-count", `${rest.length} more`);
    Dom.renew(this.list, ...shown);
    Dom.renew(Dom.find("more-conditions"), ...rest);
    if (!worst) this.worst = null;
    const words = worst?.summary ?? "Nothing known is wrong any more.";
    if (this.word !== undefined && word !== this.word) Dom.announce(`${word}. ${words}`);
    this.word = word;
    this.mark = State.#marks[state] ?? State.#marks.warning;
    this.#retitle();
  }

  static #title(name) {
    return Format.words(name).replace(/^./, (letter) => letter.toUpperCase());
  }

  static #row() {
    const row = { icon: Dom.make("span"), words: Dom.make("span"), advice: Dom.make("p", { class: "advice" }),
      meta: Dom.make("p", { class: "meta" }) };
    row.element = Dom.make("li", { class: "condition" },
      Dom.make("details", {}, Dom.make("summary", {}, row.icon, row.words), row.advice, row.meta));
    return row;
  }

  // The name of the worst stands on the chip.
  static #fill(row, { name, severity, summary, advice, since_ms, alert }, isWorst) {
    const [tone, icon] = State.#looks[severity] ?? State.#looks.warning;
    Dom.attribute(row.icon, "class", tone);
    Dom.renew(row.icon, Dom.icon(icon));
    Dom.text(row.words, summary);
    Dom.text(row.advice, advice);
    const facts = [isWorst ? severity : `${State.#title(name)}, ${severity}`, since_ms < 1000 ? "just now" : `for ${Format.seconds(since_ms)}`];
    if (alert) facts.push(`alert ${alert}`);
    Dom.text(row.meta, facts.join(" · "));
  }

  #rename() {
    if (!this.node) return;
    Dom.put("node-name", `Node ${Nodes.name(this.node)}`);
    this.#retitle();
  }

  #retitle() {
    const ratio = this.ratio === null || this.ratio === undefined ? null : `${Format.percent(this.ratio)} hits`;
    const name = this.node ? `node ${Nodes.name(this.node)}` : null;
    const word = this.lost ? "Not connected" : this.word;
    const mark = this.lost || !this.word ? "○" : this.mark;
    document.title = [word ? `${mark} ${word}` : null, name, this.lost ? null : ratio, "Nuthatch"]
      .filter(Boolean).join(" · ");
  }

  live(word) {
    const label = Dom.find("live");
    Dom.text(label, word);
    label.dataset.live = word;
  }

  // Old figures stay on the page; this says how old they are.
  connection(lostMs, refusal) {
    this.lost = lostMs !== null;
    document.documentElement.toggleAttribute("data-lost", this.lost);
    const cause = refusal ?? `Connection lost ${Format.ago(lostMs)}, trying again.`;
    const words = this.word ? `${cause} The figures are from before the interruption.` : cause;
    this.notice("lost", this.lost ? words : null, ["Try now", this.retry]);
    this.#retitle();
  }

  locked(locked) {
    const words = "This node requires a token.";
    this.notice("locked", locked ? words : null, ["Enter the token…", this.unlock]);
    if (!this.word) Dom.put("state", locked ? "Locked" : "Connecting");
    if (locked) this.notice("lost", null);
  }

  // Kept and rewritten in place: the button in it keeps its focus while the seconds pass.
  notice(name, text, [label, action] = []) {
    let notice = this.notices.get(name);
    if (text === null) {
      notice?.element.remove();
      this.notices.delete(name);
      return;
    }
    if (!notice) {
      const words = Dom.make("span");
      const button = Dom.make("button", { type: "button", onclick: action }, label);
      notice = { words, element: Dom.make("p", { class: `notice ${name}` }, words, button) };
      this.notices.set(name, notice);
      Dom.find("notices").append(notice.element);
    }
    Dom.text(notice.words, text);
  }
}
