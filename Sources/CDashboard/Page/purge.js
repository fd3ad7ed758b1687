// The form that purges, and the list of purges before.
class Purge {
  static #labels = {
    url: ["URLs, one per line", "https://www.example.com/photo.jpg"],
    prefix: ["Prefixes, one per line", "https://www.example.com/products/"],
    tag: ["Tags, one per line", "product-1234"],
  };

  constructor(api, session, sent) {
    this.api = api;
    this.session = session;
    this.sent = sent;
    this.form = Dom.find("purge-form");
    this.lines = Dom.find("purge-lines");
    this.confirm = Dom.find("purge-confirm");
    // When each purge came to the node, by this page's clock; by receipt.
    this.since = new Map();
    this.problem = Dom.find("purge-problem");
    this.receipt = new Receipt(api, Dom.find("receipt"), () => this.refresh().catch(() => {}));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    this.form.addEventListener("change", (event) => {
      if (event.target.name === "kind") this.#kindChanged();
    });
    session.addEventListener("change", () => this.#gate());
    this.#kindChanged();
  }

  // From "Purge this": the reader still has to press the button.
  fill(url) {
    this.form.elements.kind.value = "url";
    this.lines.value = url;
    this.#kindChanged();
    Dom.find("purge").scrollIntoView();
    Dom.find("purge-send").focus({ preventScroll: true });
  }

  async refresh() {
    const { purges } = await this.api.json("/admin/v1/purges?limit=20");
    Dom.find("purges-empty").hidden = purges.length > 0;
    const now = performance.now();
    this.since = new Map(purges.map(({ receipt, held_ms }) => [receipt, now - held_ms]));
    this.tick();
    const key = JSON.stringify(purges.map(({ receipt, confirmed, pending, members }) =>
      [receipt, confirmed, pending, members.length]));
    if (key === this.listed) return;
    this.listed = key;
    const list = Dom.find("purges");
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.receipt : null;
    list.replaceChildren(...purges.map((purge) => this.#row(purge)));
    if (focused) list.querySelector(`[data-receipt="${CSS.escape(focused)}"]`)?.focus();
  }

  // Each second: how long ago each was.
  tick() {
    const now = performance.now();
    for (const row of Dom.find("purges").querySelectorAll("[data-receipt]")) {
      const since = this.since.get(row.dataset.receipt);
      if (since !== undefined) Dom.text(row.lastElementChild, Format.ago(now - since));
    }
  }

  #row(purge) {
    const others = purge.targets.length - 1;
    const more = others > 0 ? Dom.make("span", { class: "more" }, `+ ${others} more`) : null;
    const state = purge.all_confirmed ? ["good", "tick"] : purge.pending > 0 ? ["warn", "half"] : ["bad", "cross"];
    return Dom.make("li", {}, Dom.make("button", {
      type: "button",
      "data-receipt": purge.receipt,
      onclick: () => {
        this.receipt.watch(purge);
        Dom.find("receipt-title").focus();
      },
    },
    Dom.make("span", { class: "what" }, ...Receipt.target(purge.targets[0]), more),
    Dom.make("span", { class: "mode" }, purge.mode),
    Nodes.stateLabel({ tone: state[0], icon: state[1], word: `${purge.confirmed} of ${purge.members.length}` }),
    Dom.make("span", { class: "when" }, Format.ago(purge.held_ms))));
  }

  get #kind() {
    return this.form.elements.kind.value;
  }

  #kindChanged() {
    const everything = this.#kind === "everything";
    Dom.find("purge-lines-field").hidden = everything;
    Dom.find("purge-confirm-field").hidden = !everything;
    this.confirm.value = "";
    this.#complain("");
    if (everything) return;
    const [label, example] = Purge.#labels[this.#kind];
    Dom.put("purge-lines-label", label);
    this.lines.placeholder = example;
  }

  #gate() {
    const reason = this.session.reason("purge", "Purging");
    Dom.find("purge-fields").disabled = !this.session.allows("purge");
    Dom.find("purge-reason").hidden = reason === null;
    Dom.put("purge-reason", reason ?? "");
  }

  #complain(text, field) {
    this.problem.textContent = text;
    for (const each of [this.lines, this.confirm]) {
      Dom.attribute(each, "aria-invalid", String(each === field && text !== ""));
    }
    field?.focus();
  }

  // The targets, or null once the reader has been told what is missing.
  #targets() {
    if (this.#kind === "everything") {
      if (this.confirm.value.trim().toLowerCase() === "everything") return [{ everything: true }];
      this.#complain("Type the word everything to confirm.", this.confirm);
      return null;
    }
    const values = [...new Set(this.lines.value.split("\n").map((line) => line.trim()).filter(Boolean))];
    if (values.length === 0) {
      this.#complain(`Enter at least one ${this.#kind === "url" ? "URL" : this.#kind}.`, this.lines);
      return null;
    }
    return values.map((value) => ({ [this.#kind]: value }));
  }

  async #send() {
    if (this.sending) return;
    const targets = this.#targets();
    if (targets === null) return;
    this.#complain("");
    // Not disabled: that would take the focus from the button.
    this.sending = true;
    try {
      const mode = this.form.elements.mode.value;
      const receipt = await this.api.post("/admin/v1/purges?wait=issued", { mode, targets });
      this.lines.value = "";
      this.confirm.value = "";
      this.receipt.watch(receipt);
      this.refresh().catch(() => {});
      this.sent();
    } catch (problem) {
      this.#complain(problem.status
        ? Purge.#readable(problem.message, targets)
        : "This node cannot be reached. When it is reachable again, check the recent purges, and repeat the purge if necessary.",
      this.lines);
    } finally {
      this.sending = false;
    }
  }

  // "targets[2].url: …" names a place in a document that the reader never saw.
  static #readable(message, targets) {
    return message.replace(/targets\[(\d+)\](?:\.\w+)?:?/g, (whole, index) => {
      const target = targets[Number(index)];
      return target ? `“${Object.values(target)[0]}”:` : whole;
    });
  }
}
