// The cards under "Traffic": each figure, its note in words, its chart, and the same as a table.
class Traffic {
  static #tierNames = { memory: "Memory", disk: "Disk", peer: "Another node", origin: "Origin" };
  static #sources = [
    ["Hits", [["memory", "Memory"], ["disk", "Disk"], ["peer", "Another node"], ["collapsed", "Shared fetch"],
      ["revalidated", "Revalidated"], ["stale", "Stale"]]],
    ["Misses", [["origin", "Origin"]]],
    ["Not counted", [["passed", "Passed through"], ["none", "This node"]]],
  ];

  constructor(timeline) {
    this.timeline = timeline;
    const chart = (id, options) => new TimeChart(Dom.find(id), options);
    this.hit = chart("hit-chart", {
      title: "Hit ratio", scale: "share", format: Format.percent,
      series: [{ key: "hitRatio", name: "Hits, a mean over 10 s", kind: "area", look: "cache" }],
    });
    this.requests = chart("requests-chart", {
      title: "Requests per second", scale: "amount", format: Format.rate,
      series: [
        { key: "misses", name: "Origin", kind: "area", look: "origin" },
        { key: "others", name: "Other", kind: "area", look: "other" },
        { key: "hits", name: "Cache", kind: "area", look: "cache" },
      ],
    });
    this.saved = chart("saved-chart", {
      title: "Bytes per second", scale: "bytes", format: Format.byteRate,
      series: [
        { key: "received", name: "From origins", kind: "area", look: "origin" },
        { key: "saved", name: "Saved", kind: "area", look: "cache" },
      ],
    });
    this.latency = chart("latency-chart", {
      title: "p99 latency by tier", scale: "latency", format: Format.latency, legend: false,
      series: Timeline.tiers.map((tier) => ({ key: tier, name: Traffic.#tierNames[tier], kind: "line", look: tier })),
    });
    this.#makeRows();
    Dom.find("figures").addEventListener("toggle", () => this.#table());
  }

  show() {
    const now = performance.now();
    const minute = this.timeline.window(60_000);
    const recent = this.timeline.window(10_000);
    const total = this.timeline.total;
    if (!total) return;
    this.#hitRatio(minute, total, now);
    this.#rate(recent, minute, total, now);
    this.#savings(minute, total, now);
    this.#latencies(minute, now);
    this.#shares(minute?.all ? minute : total, minute);
    this.#table();
  }

  // "the last minute", or what there is of it so far.
  static #period(window) {
    return window.ms > 55_000 ? "the last minute" : `the last ${Format.duration(Math.round(window.ms / 1000) * 1000)}`;
  }

  static #extent(points, key) {
    const values = points.map((point) => point[key]).filter((value) => value !== null && value !== undefined);
    return values.length === 0 ? null : [Math.min(...values), Math.max(...values)];
  }

  #hitRatio(minute, total, now) {
    const since = total.hitRatio === null ? null : `${Format.percent(total.hitRatio)} since the start`;
    const period = minute && Traffic.#period(minute);
    let note = "No image has been requested yet. Images are at /v1/image?url=… on the port for clients.";
    if (minute?.hitRatio !== null && minute) {
      note = `${Format.roughly(minute.hits)} of ${Format.roughly(minute.hits + minute.misses)} in ${period}; ${since}`;
    } else if (since) {
      note = minute ? `No cacheable request in ${period}; ${since}` : since;
    }
    this.hitRatio = minute ? minute.hitRatio : total.hitRatio;
    const ratio = Format.percent(this.hitRatio ?? NaN);
    Dom.put("hit-ratio", ratio);
    Dom.put("hit-note", note);
    const extent = Traffic.#extent(this.timeline.points, "hitRatio");
    const [lowest, highest] = (extent ?? []).map(Format.percent);
    this.hit.show(this.timeline.points, now, extent === null
      ? "Hit ratio over five minutes: no requests"
      : `Hit ratio over five minutes: now ${ratio}, lowest ${lowest}, highest ${highest}`);
  }

  #rate(recent, minute, total, now) {
    const rate = recent ? recent.all / recent.seconds : 0;
    Dom.put("requests", recent ? Format.rate(rate) : "–");
    Dom.put("requests-note", minute
      ? `${Format.roughly(minute.all)} in ${Traffic.#period(minute)}; ${Format.roughly(total.all)} since the start`
      : `${Format.roughly(total.all)} since the start`);
    if (total.all === 0) Dom.put("requests-note", "None yet.");
    const { points } = this.timeline;
    const most = Math.max(0, ...points.map(({ hits = 0, misses = 0, others = 0 }) => hits + misses + others));
    const misses = Format.rate(recent ? recent.misses / recent.seconds : 0);
    this.requests.show(points, now, `Requests per second over five minutes: now ${Format.rate(rate)}, `
      + `of them ${misses} to the origin; at most ${Format.rate(most)}`);
  }

  #savings(minute, total, now) {
    const some = minute?.sent ? minute : null;
    const shown = some ?? (minute ? null : total);
    Dom.put("saved-share", shown?.sent ? Format.percent(shown.savedShare) : "–");
    Dom.put("saved-bytes", shown?.sent ? Format.bytes(shown.saved) : "");
    const since = total.sent > 0 ? `${Format.bytes(total.saved)} since the start` : "";
    let note = "Nothing has been sent yet.";
    if (some) note = `of ${Format.bytes(some.sent)} sent in ${Traffic.#period(some)}; ${since}`;
    else if (since) note = minute ? `Nothing sent in ${Traffic.#period(minute)}; ${since}` : since;
    Dom.put("saved-note", note);
    const last = this.timeline.points.findLast((point) => !point.gap);
    const present = last
      ? `now ${Format.byteRate(last.received)} from origins and ${Format.byteRate(last.saved)} saved`
      : "nothing yet";
    this.saved.show(this.timeline.points, now, `Bytes over five minutes: ${present}`);
  }

  #latencies(minute, now) {
    const words = [];
    for (const tier of Timeline.tiers) {
      const { p50, p99 } = minute?.latency[tier] ?? { p50: null, p99: null };
      const row = this.tierRows[tier];
      Dom.text(row.p50, Format.latency(p50));
      Dom.text(row.p99, Format.latency(p99));
      LatencyScale.draw(row.svg, p50, p99, tier);
      if (p99 !== null) words.push(`${Traffic.#tierNames[tier]} ${Format.latency(p99)}`);
    }
    const present = words.length > 0 ? `now ${words.join(", ")}` : "no responses in the last minute";
    this.latency.show(this.timeline.points, now, `p99 latency by tier over five minutes: ${present}`);
  }

  #shares(window, minute) {
    for (const [kind, row] of Object.entries(this.sourceRows)) {
      const share = window.all > 0 ? window.requests[kind] / window.all : 0;
      Dom.text(row.rate, minute ? Format.rate(minute.requests[kind] / minute.seconds) : "–");
      Dom.text(row.share, share > 0 ? Format.percent(share) : "–");
      row.bar.style.width = share > 0 ? `max(2px, ${share * 100}%)` : "0";
    }
    const period = window === minute ? `Over ${Traffic.#period(minute)}` : "Since the start";
    const failures = window.failed === 0
      ? "no origin fetch failed"
      : `${Format.count(window.failed)} of ${Format.plural(window.fetches, "origin fetch", "origin fetches")} failed`;
    Dom.put("sources-note", window.all === 0 ? "" : `${period}; ${failures}.`);
  }

  #makeRows() {
    const cell = (name = "") => Dom.make("td", { class: name });
    this.tierRows = {};
    document.querySelector(".latency .scale").append(LatencyScale.header());
    for (const tier of Timeline.tiers) {
      const svg = Dom.draw("svg", { "aria-hidden": "true", width: "100%", height: 20 });
      const row = { p50: cell(), p99: cell(), svg };
      this.tierRows[tier] = row;
      Dom.find("latency-rows").append(Dom.make("tr", {},
        Dom.make("th", { scope: "row" },
          Dom.make("span", { class: `swatch stripe ${tier}` }), Traffic.#tierNames[tier]),
        row.p50, row.p99, Dom.make("td", { class: "scale" }, svg)));
    }
    this.sourceRows = {};
    for (const [group, kinds] of Traffic.#sources) {
      const rows = Dom.find("source-rows");
      rows.append(Dom.make("tr", { class: "group" }, Dom.make("th", { scope: "rowgroup", colspan: 4 }, group)));
      for (const [kind, name] of kinds) {
        const look = kind === "origin" ? "origin" : group === "Hits" ? "cache" : "other";
        const row = { rate: cell(), share: cell(), bar: Dom.make("span", { class: `bar ${look}` }) };
        this.sourceRows[kind] = row;
        rows.append(Dom.make("tr", {}, Dom.make("th", { scope: "row" }, name),
          Dom.make("td", { class: "length" }, row.bar), row.rate, row.share));
      }
    }
  }

  #table() {
    if (!Dom.find("figures").open) return;
    const now = performance.now();
    const rows = Array.from({ length: 10 }, (_, index) => {
      const window = this.timeline.window(30_000, now - index * 30_000);
      const [from, to] = [index, index + 1].map((count) => Format.duration(count * 30_000));
      const period = index === 0 ? "last 30 s" : `${from} to ${to} ago`;
      const figures = window === null ? ["–", "–", "–", "–", "–"] : [
        Format.rate(window.all / window.seconds),
        Format.percent(window.hitRatio ?? NaN),
        Format.bytes(window.sent / window.seconds),
        Format.bytes(window.received / window.seconds),
        Format.percent(window.savedShare ?? NaN),
      ];
      return Dom.make("tr", {}, Dom.make("th", { scope: "row" }, period),
        ...figures.map((figure) => Dom.make("td", {}, figure)));
    });
    Dom.find("figure-rows").replaceChildren(...rows);
  }
}
