// The cluster: its totals over the last minute, and each member with what it says of itself.
class Members {
  constructor(ring) {
    this.ring = ring;
    this.rows = new Rows(Dom.find("members-table"), "Members of the cluster",
      ["Node", "State", "#Requests/s", "#Hits", "#5xx", "#From origins", "#Stored", "#Share", "#Contact", "#Lag"], {
        key: ({ node }) => node,
        age: ({ summary }) => summary?.age_ms ?? 0,
        counters: ({ summary }) => summary && Members.#counters(summary),
        cells: (member, change) => this.#cells(member, change),
        added: (element, { node }) => {
          for (const kind of ["pointerenter", "focusin"]) element.addEventListener(kind, () => this.ring.light(node));
          for (const kind of ["pointerleave", "focusout"]) element.addEventListener(kind, () => this.ring.light(null));
        },
      });
  }

  static #counters(summary) {
    const { requests, hits, cacheable, responses_5xx, origin_fetches, origin_failed, sent_bytes, origin_bytes } = summary;
    return { requests, hits, cacheable, responses_5xx, origin_fetches, origin_failed, sent_bytes, origin_bytes };
  }

  show(members, fenced) {
    // A node alone has no cluster: it owns every key, and is its own majority.
    const alone = members.length < 2;
    Dom.find("cluster").hidden = alone;
    Dom.find("cluster-link").hidden = alone;
    if (alone) return;
    this.fenced = fenced;
    const counted = members.filter((member) => member.counted).length;
    Dom.put("members-note", `${Format.plural(counted, "voter")}; a majority is ${Math.floor(counted / 2) + 1}`);
    this.changes = [];
    this.rows.show(members.toSorted((one, other) =>
      this.#rank(one) - this.#rank(other) || (Nodes.name(one.node) < Nodes.name(other.node) ? -1 : 1)));
    this.#totals(members);
  }

  // This node first, then what needs attention, then the rest by name.
  #rank(member) {
    if (member.self) return 0;
    return { bad: 1, warn: 2, good: 3, faint: 4 }[this.#state(member).tone];
  }

  // A member that is alive may still say of itself that something is wrong.
  #state(member) {
    const state = Nodes.state(member, this.fenced);
    if (state.tone !== "good") return state;
    if (!member.self && !member.connected) return { word: "not connected", icon: "cross", tone: "bad" };
    const said = { critical: { icon: "cross", tone: "bad" }, warning: { icon: "triangle", tone: "warn" } };
    return member.summary?.state in said ? { word: member.summary.state, ...said[member.summary.state] } : state;
  }

  #cells(member, change) {
    if (change) this.changes.push(change);
    const { node, summary } = member;
    const sub = (text, tone = "") => Dom.make("span", { class: `sub ${tone}` }, text);
    const per = (amount, format) => (change ? format(amount / change.seconds) : "–");
    const ratio = change ? Timeline.share(change.hits, change.cacheable) : null;
    const share = change ? Timeline.share(change.responses_5xx, change.requests) : null;
    const differ = member.settings_differ ?? [];
    const name = Nodes.name(node);
    const link = /^https?:\/\//.test(member.admin_url ?? "") && !member.self
      ? Dom.make("a", { href: member.admin_url }, name) : Dom.make("b", {}, name);
    return [
      [Nodes.swatch(node), link, member.self ? Dom.make("span", { class: "self" }, "this node") : null,
        sub(member.address), Nodes.button(node)],
      [Nodes.stateLabel(this.#state(member)),
        summary?.condition ? sub(summary.condition) : null,
        member.counted ? null : sub("not a voter"),
        differ.length > 0 ? sub(`other ${Format.plural(differ.length, "setting")}: ${differ.join(", ")}`, "warn") : null,
        member.version && member.version !== this.version ? sub(`version ${member.version}`, "warn") : null],
      [per(change?.requests, Format.rate)],
      [Format.percent(ratio ?? NaN)],
      [share > 0 ? Dom.make("b", { class: "bad" }, Format.percent(share)) : Format.percent(share ?? NaN)],
      [per(change?.origin_bytes, Format.byteRate)],
      summary
        ? [Format.bytes(summary.memory_used_bytes), sub(`${Format.bytes(summary.disk_used_bytes)} on disk`)]
        : ["–"],
      [member.ring_share > 0 ? Format.percent(member.ring_share) : "–"],
      [member.self ? "–" : member.contact_ms_ago === null ? "never" : Format.ago(member.contact_ms_ago)],
      [member.self ? "–" : Members.#lag(member.lag_records)],
    ];
  }

  static #lag(records) {
    if (records === null) return "unknown";
    return records === 0 ? "none" : Format.plural(records, "purge");
  }

  #totals(members) {
    const alive = members.filter(({ state }) => state === "alive").length;
    const told = members.filter(({ summary }) => summary);
    const sum = (key) => this.changes.reduce((total, change) => total + change[key], 0);
    const per = (key) => this.changes.reduce((total, change) => total + change[key] / change.seconds, 0);
    const stored = (key) => told.reduce((total, { summary }) => total + summary[key], 0);
    const share = Timeline.share(sum("responses_5xx"), sum("requests")) ?? NaN;
    const known = this.changes.length > 0;
    const figures = [
      ["Alive", `${alive} of ${members.filter(({ state }) => state !== "left").length}`],
      ["Requests per second", known ? Format.rate(per("requests")) : "–"],
      ["Hit ratio", Format.percent(Timeline.share(sum("hits"), sum("cacheable")) ?? NaN)],
      ["5xx", share > 0 ? Dom.make("span", { class: "bad" }, Format.percent(share)) : Format.percent(share)],
      ["Sent", known ? Format.byteRate(per("sent_bytes")) : "–"],
      ["From origins", known ? Format.byteRate(per("origin_bytes")) : "–"],
      ["In memory", Format.bytes(stored("memory_used_bytes"))],
      ["On disk", Format.bytes(stored("disk_used_bytes"))],
    ];
    const list = Dom.find("totals");
    Dom.renew(list, ...figures.map(([term, figure]) =>
      Dom.make("div", {}, Dom.make("dt", {}, term), Dom.make("dd", {}, figure))));
    Dom.put("totals-note", told.length === members.length
      ? "Of all members, in the last minute."
      : `Of the ${told.length} of ${members.length} members that say so, in the last minute.`);
  }
}
