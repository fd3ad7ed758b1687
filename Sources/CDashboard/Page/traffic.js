// The cards under "Traffic": each figure, its note in words, its chart, and the same as a table.
class Traffic {
  static tierNames = { memory: "Memory", disk: "Disk", peer: "Another node", origin: "Origin" };
  static #sources = [
    ["Hits", [["memory", "Memory"], ["disk", "Disk"], ["peer", "Another node"], ["collapsed", "Shared fetch"],
      ["revalidated", "Revalidated"], ["stale", "Stale"]]],
    ["Misses", [["origin", "Origin"]]],
    ["Not counted", [["passed", "Passed through"], ["none", "This node"]]],
  ];
  static #tableRows = 12;
  static #tableStep = 300_000;

  constructor(timeline) {
    this.timeline = timeline;
    const chart = (id, options) => new TimeChart(Dom.find(id), options);
    this.responses = chart("requests-chart", {
      title: "Responses per second", scale: "amount", format: Format.rate,
      series: [
        { key: "errors5xx", name: "5xx", kind: "area", look: "failed" },
        { key: "errors4xx", name: "4xx", kind: "area", look: "refused" },
        { key: "successes", name: "Others", kind: "area", look: "cache" },
      ],
    });
    this.hit = chart("hit-chart", {
      title: "Hit ratio", scale: "share", format: Format.percent,
      series: [{ key: "hitRatio", name: "Hits", kind: "area", look: "cache" }],
    });
    this.saved = chart("saved-chart", {
      title: "Bytes per second", scale: "bytes", format: Format.byteRate,
      series: [
        { key: "received", name: "From origins", kind: "area", look: "origin" },
        { key: "saved", name: "Saved", kind: "area", look: "cache" },
      ],
    });
    this.latency = chart("latency-chart", {
      title: "Latency of all responses", scale: "latency", format: Format.latency,
      series: [
        { key: "p99", name: "p99", kind: "line", look: "cache" },
        { key: "p50", name: "p50", kind: "line", look: "disk" },
      ],
    });
    this.#makeRows();
    Dom.find("figures").addEventListener("toggle", () => this.#table());
  }

  show() {
    const { now, span, points, total } = this.timeline;
    const drawn = { now, span, points };
    const minute = this.timeline.window(60_000);
    const change = this.timeline.recent.change();
    this.#rate(minute, total, drawn);
    this.#hitRatio(minute, total, drawn);
    this.#savings(minute, total, drawn);
    this.#latencies(minute, change, drawn);
    this.#shares(change ?? { ms: now, seconds: now / 1000, ...this.timeline.counters });
    this.#table();
  }

  // "the last minute", or what there is of it so far.
  static period({ ms }) {
    return ms > 45_000 ? "the last minute" : `the last ${Format.duration(Math.max(1, Math.round(ms / 1000)) * 1000)}`;
  }

  static #extent(points, key) {
    const values = points.map((point) => point[key]).filter((value) => value !== null);
    return values.length === 0 ? null : [Math.min(...values), Math.max(...values)];
  }

  static #over(span) {
    return `over ${Format.duration(span)}`;
  }

  #rate(minute, total, drawn) {
    const recent = this.timeline.recent.change(10_000);
    const mean = minute ? minute.requests / minute.seconds : null;
    const rate = recent ? Timeline.sum(recent.requests) / recent.seconds : mean;
    Dom.put("requests", rate === null ? "–" : Format.rate(rate));
    const failing = minute?.errors5xx > 0 ? `${Format.percent(minute.share5xx)} are 5xx` : null;
    const figure = Dom.find("requests-failing");
    Dom.text(figure, failing ?? "");
    let note = "None yet.";
    if (total.requests > 0) {
      note = `${Format.roughly(total.requests)} since the start`;
      if (minute?.requests) note = `${Format.roughly(minute.requests)} in ${Traffic.period(minute)}; ${note}`;
    }
    Dom.put("requests-note", note);
    const most = Traffic.#extent(drawn.points, "errors5xx")?.[1] ?? 0;
    this.responses.show(drawn, `Responses per second ${Traffic.#over(drawn.span)}: now ${Format.rate(rate ?? 0)}`
      + `${failing ? `, of which ${failing}` : ""}; at most ${Format.rate(most)} per second were 5xx`);
  }

  #hitRatio(minute, total, drawn) {
    const since = total.hitRatio === null ? null : `${Format.percent(total.hitRatio)} since the start`;
    const period = minute && Traffic.period(minute);
    let note = "Nothing cacheable has been requested yet.";
    if (minute && minute.hitRatio !== null) {
      note = `${Format.roughly(minute.hits)} of ${Format.roughly(minute.hits + minute.misses)} in ${period}; ${since}`;
    } else if (since) {
      note = minute ? `No cacheable request in ${period}; ${since}` : since;
    }
    this.ratio = minute ? minute.hitRatio : total.hitRatio;
    const ratio = Format.percent(this.ratio ?? NaN);
    Dom.put("hit-ratio", ratio);
    Dom.put("hit-note", note);
    const extent = Traffic.#extent(drawn.points, "hitRatio");
    const [lowest, highest] = (extent ?? []).map(Format.percent);
    this.hit.show(drawn, `Hit ratio ${Traffic.#over(drawn.span)}: `
      + (extent === null ? "no requests" : `now ${ratio}, lowest ${lowest}, highest ${highest}`));
  }

  #savings(minute, total, drawn) {
    const some = minute?.sent ? minute : null;
    const shown = some ?? (minute ? null : total);
    Dom.put("saved-share", shown?.sent ? Format.percent(shown.savedShare) : "–");
    Dom.put("saved-bytes", shown?.sent ? Format.bytes(shown.saved) : "");
    const since = total.sent > 0 ? `${Format.bytes(total.saved)} since the start` : "";
    let note = "Nothing has been sent yet.";
    if (some) note = `of ${Format.bytes(some.sent)} sent in ${Traffic.period(some)}; ${since}`;
    else if (since) note = minute ? `Nothing sent in ${Traffic.period(minute)}; ${since}` : since;
    Dom.put("saved-note", note);
    const last = drawn.points.at(-1);
    const present = last
      ? `now ${Format.byteRate(last.received)} from origins and ${Format.byteRate(last.saved)} saved`
      : "nothing yet";
    this.saved.show(drawn, `Bytes ${Traffic.#over(drawn.span)}: ${present}`);
  }

  #latencies(minute, change, drawn) {
    const bounds = this.timeline.counters.latency.bounds_us;
    for (const tier of Timeline.tiers) {
      const counts = change ? Object.values(change.latency[tier]) : [];
      const row = this.tierRows[tier];
      Dom.text(row.p50, Format.latency(Timeline.quantile(counts, bounds, 0.5)));
      Dom.text(row.p99, Format.latency(Timeline.quantile(counts, bounds, 0.99)));
    }
    const last = drawn.points.findLast((point) => point.p99 !== null);
    this.latency.show(drawn, `Latency ${Traffic.#over(drawn.span)}: `
      + (last ? `now p99 ${Format.latency(last.p99)}, p50 ${Format.latency(last.p50)}` : "no responses"));
  }

  #shares({ ms, seconds, requests, origin }) {
    const all = Timeline.sum(requests);
    for (const [kind, row] of Object.entries(this.sourceRows)) {
      const share = all > 0 ? requests[kind] / all : 0;
      Dom.text(row.rate, Format.rate(requests[kind] / seconds));
      Dom.text(row.share, share > 0 ? Format.percent(share) : "–");
      row.bar.style.width = share > 0 ? `max(2px, ${share * 100}%)` : "0";
    }
    const fetches = origin.fetches_ok + origin.fetches_failed;
    const failures = origin.fetches_failed === 0
      ? "no origin fetch failed"
      : `${Format.count(origin.fetches_failed)} of ${Format.plural(fetches, "origin fetch", "origin fetches")} failed`;
    Dom.put("sources-note", `In ${Traffic.period({ ms })}: ${failures}.`);
  }

  #makeRows() {
    const cell = (name = "") => Dom.make("td", { class: name });
    this.tierRows = {};
    for (const tier of Timeline.tiers) {
      const row = { p50: cell(), p99: cell() };
      this.tierRows[tier] = row;
      Dom.find("latency-rows").append(Dom.make("tr", {},
        Dom.make("th", { scope: "row" }, Traffic.tierNames[tier]), row.p50, row.p99));
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
    const rows = Array.from({ length: Traffic.#tableRows }, (_, index) => {
      const step = Traffic.#tableStep;
      const window = this.timeline.window(step, index * step);
      const [from, to] = [index, index + 1].map((count) => Format.duration(count * step));
      const period = index === 0 ? `last ${to}` : `${from} to ${to} ago`;
      const figures = window === null ? Array(7).fill("–") : [
        Format.rate(window.requests / window.seconds),
        Format.percent(window.share5xx ?? NaN),
        Format.percent(window.hitRatio ?? NaN),
        Format.byteRate(window.sent / window.seconds),
        Format.byteRate(window.received / window.seconds),
        Format.count(window.failed),
        Format.latency(window.p99 || null),
      ];
      return Dom.make("tr", {}, Dom.make("th", { scope: "row" }, period),
        ...figures.map((figure) => Dom.make("td", {}, figure)));
    });
    Dom.find("figure-rows").replaceChildren(...rows);
  }
}
