// What the node keeps: both tiers against their limits, and its log of invalidations.
class Tiers {
  constructor() {
    this.meters = Dom.find("kept-meters");
    this.facts = Dom.find("kept-facts");
    this.memory = this.#meter("Memory");
    this.disk = this.#meter("Disk");
  }

  show({ memory, disk, invalidations }) {
    const pinned = memory.pinned_bytes > 0 ? `, ${Format.bytes(memory.pinned_bytes)} still being sent` : "";
    this.#fill(this.memory, memory, `${Format.plural(memory.entries, "entry", "entries")}${pinned}`);
    if (disk === null) this.#fill(this.disk, null, "No disk tier: a restart empties the cache.");
    else if (!disk.up) this.#fill(this.disk, null, "Down: serving from memory and the origin.");
    else this.#fill(this.disk, disk, Format.plural(disk.entries, "entry", "entries"));
    const key = JSON.stringify(invalidations);
    if (key === this.shown) return;
    this.shown = key;
    Dom.pairs(this.facts, [
      ["Log records applied", Format.count(invalidations.applied)],
      ["Log records stored", Format.count(invalidations.records)],
      ["Purges not confirmed by all", Format.count(invalidations.receipts_pending)],
    ]);
  }

  #meter(name) {
    const part = {
      amount: Dom.make("span", { class: "amount" }),
      note: Dom.make("p", { class: "note" }),
      fill: Dom.make("span", { class: "fill" }),
    };
    part.track = Dom.make("div", {
      class: "track", role: "meter", "aria-label": `${name} used`, "aria-valuemin": 0, "aria-valuemax": 100,
    }, part.fill);
    this.meters.append(Dom.make("div", { class: "meter" },
      Dom.make("p", { class: "meter-head" }, Dom.make("b", {}, name), part.amount), part.track, part.note));
    return part;
  }

  #fill(part, tier, note) {
    const share = tier && tier.limit_bytes > 0 ? Math.min(1, tier.used_bytes / tier.limit_bytes) : 0;
    const amount = tier ? `${Format.bytes(tier.used_bytes)} of ${Format.bytes(tier.limit_bytes)}` : "";
    part.fill.style.width = `${share * 100}%`;
    Dom.text(part.amount, amount);
    Dom.text(part.note, note);
    Dom.attribute(part.track, "aria-valuenow", String(Math.round(share * 100)));
    Dom.attribute(part.track, "aria-valuetext", amount || note);
  }
}
