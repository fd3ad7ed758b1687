// One purge's receipt, filling in node by node.
class Receipt {
  static #quick = 250;
  static #slow = 5000;
  // Somebody pending for longer than this is not about to confirm within a blink.
  static #quickFor = 30_000;
  static #watchMax = 300_000;
  static #standings = {
    confirmed: ["good", "tick"],
    pending: ["warn", "half"],
    unreachable: ["bad", "cross"],
  };

  constructor(api, container, changed) {
    this.api = api;
    this.container = container;
    this.changed = changed;
    this.watching = new AbortController();
  }

  // Shows this receipt from now on, in place of the one before.
  async watch(receipt) {
    this.watching.abort();
    const watching = new AbortController();
    this.watching = watching;
    const begun = performance.now();
    const path = `/admin/v1/purges/${encodeURIComponent(receipt.receipt)}`;
    this.spoken = null;
    let note = null;
    while (!watching.signal.aborted) {
      this.#draw(receipt, note);
      const spent = performance.now() - begun;
      if (receipt.all_confirmed) return;
      if (spent > Receipt.#watchMax) {
        this.#draw(receipt, "No longer updated. Select it under “Recent purges” to continue.");
        return;
      }
      const quick = receipt.pending > 0 && spent < Receipt.#quickFor;
      await Dom.pause(quick ? Receipt.#quick : Receipt.#slow, watching.signal);
      if (watching.signal.aborted) return;
      try {
        const before = receipt.confirmed;
        receipt = await this.api.json(path, watching.signal);
        note = null;
        if (receipt.confirmed !== before) this.changed();
      } catch (problem) {
        if (problem.status === 404) {
          this.#draw(receipt, "This node’s log no longer has the record; this is its last known state.");
          return;
        }
        note = "The receipt cannot be read at the moment; retrying.";
      }
    }
  }

  #draw(receipt, note) {
    const key = JSON.stringify([receipt, note]);
    if (key === this.drawn) return;
    this.drawn = key;
    const words = Receipt.words(receipt);
    const parts = receipt.members.length;
    const title = receipt.mode === "hard" ? "Hard purge" : "Soft purge";
    const view = receipt.seen_by === receipt.issued_by ? "" : `, seen from ${Nodes.name(receipt.seen_by)}`;
    const source = `Receipt ${Receipt.short(receipt)}, issued by ${Nodes.name(receipt.issued_by)}${view}`;
    const more = receipt.targets.length - 5;
    this.container.hidden = false;
    this.container.replaceChildren(
      Dom.make("header", {},
        Dom.make("h3", { tabindex: "-1", id: "receipt-title" }, title),
        Dom.make("p", { class: "note" }, source)),
      Dom.make("ul", { class: "targets" },
        ...receipt.targets.slice(0, 5).map((target) => Dom.make("li", {}, ...Receipt.target(target))),
        more > 0 ? Dom.make("li", {}, `and ${more} more`) : null),
      Dom.make("div", { class: "progress", "aria-hidden": "true" }, ...receipt.members.map(({ standing }) =>
        Dom.make("span", { class: `${Receipt.#standings[standing]?.[0] ?? "warn"} ${standing}` }))),
      Dom.make("p", { class: "words" }, Dom.make("b", {}, `${receipt.confirmed} of ${parts} confirmed. `), words),
      Dom.make("ul", { class: "standings" }, ...receipt.members.map((member) => Receipt.#member(member))),
    );
    if (note) this.container.append(Dom.make("p", { class: "note" }, note));
    const settled = receipt.all_confirmed ? "all" : receipt.pending === 0 ? "rest unreachable" : "pending";
    if (settled !== this.spoken) Dom.announce(`${receipt.confirmed} of ${parts} nodes confirmed the purge. ${words}`);
    this.spoken = settled;
  }

  static short(receipt) {
    const [stream, number] = receipt.receipt.split("-");
    return number === undefined ? receipt.receipt : `${stream.slice(0, 6)}…-${number}`;
  }

  // What the receipt promises, and no more than that.
  static words(receipt) {
    const { mode, members, all_confirmed, unreachable, pending, majority_ms, bounded_in_ms } = receipt;
    if (all_confirmed) {
      const last = Format.duration(Math.max(0, ...members.map((member) => member.elapsed_ms ?? 0)));
      const gone = mode === "hard" ? "Gone from" : "Stale on";
      return members.length === 1
        ? `${gone} the only node after ${last}.`
        : `${gone} all ${members.length} nodes, the last after ${last}.`;
    }
    const back = unreachable === 1 ? "it applies the purge when it returns" : "they apply the purge when they return";
    const rest = unreachable > 0 ? ` ${Format.plural(unreachable, "node")} cannot be reached; ${back}.` : "";
    if (majority_ms === null) {
      return `Not on a majority yet, so there is no time limit yet.${pending > 0 ? "" : rest}`;
    }
    const serves = mode === "hard" ? "no node serves it" : "no node serves it as fresh";
    const bound = bounded_in_ms === null ? "" : bounded_in_ms > 0
      ? `; ${serves} after ${Format.duration(Math.ceil(bounded_in_ms / 1000) * 1000)}`
      : `; ${serves}`;
    return `On a majority after ${Format.duration(majority_ms)}${bound}.${rest}`;
  }

  static target(target) {
    const [kind, value] = Object.entries(target)[0] ?? ["everything", true];
    return kind === "everything"
      ? [Dom.make("b", {}, "Everything")]
      : [
        Dom.make("span", { class: "kind" }, kind === "url" ? "URL" : kind),
        Dom.make("span", { class: "address" }, String(value)),
      ];
  }

  static #member({ node, standing, elapsed_ms, unreachable_since_ms_ago }) {
    const [tone, icon] = Receipt.#standings[standing] ?? ["warn", "half"];
    let since = "";
    if (elapsed_ms !== undefined) since = `after ${Format.duration(elapsed_ms)}`;
    else if (unreachable_since_ms_ago !== undefined) since = `for ${Format.seconds(unreachable_since_ms_ago)}`;
    return Dom.make("li", {},
      Dom.make("span", { class: "short" }, Nodes.name(node)),
      Nodes.stateLabel({ word: standing, icon, tone }),
      Dom.make("span", { class: "since" }, since));
  }
}
