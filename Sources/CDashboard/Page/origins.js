// Sites, the origins behind them, and certificates: each with its health in words, the worst first.
class Origins {
  static #health = {
    down: { word: "down", icon: "cross", tone: "bad" },
    failing: { word: "failing", icon: "triangle", tone: "warn" },
    ok: { word: "ok", icon: "full", tone: "good" },
  };
  static #ranks = ["down", "failing", "ok"];
  // Days before the end from which a certificate is a warning, and critical.
  static #certificateDays = [30, 7];

  constructor(api) {
    this.api = api;
    this.sites = new Rows(Dom.find("sites-table"), "Sites",
      ["Site", "Health", "#Requests/s", "#Hits", "#5xx", "#Sent", "#From origins", "Last error"], {
        key: ({ site }) => site,
        counters: ({ requests, bytes, responses, origin_received_bytes: received }) =>
          ({ requests, bytes, responses, received }),
        cells: Origins.#site,
      });
    this.origins = new Rows(Dom.find("origins-table"), "Origins",
      ["Origin", "Health", "#Fetches", "#Failed", "#Received", "#Queue", "#Connections", "Last error"], {
        key: ({ key }) => key,
        counters: ({ fetches, failed, received_bytes: received }) => ({ fetches, failed, received }),
        cells: Origins.#origin,
      });
    this.certificates = new Rows(Dom.find("certificates-table"), "Certificates", ["Names", "Valid for", "Use", "File"], {
      key: ({ file, use, not_after: end, names }) => `${use} ${file} ${end} ${names.join()}`,
      cells: Origins.#certificate,
    });
  }

  async refresh() {
    const [{ sites }, { origins }] = await Promise.all(
      ["/admin/v1/sites", "/admin/v1/origins"].map((path) => this.api.json(path)));
    const worst = (one, other) => Origins.#ranks.indexOf(one.health) - Origins.#ranks.indexOf(other.health);
    // A URL may come twice: as a site's origin, and as one of images.
    const times = new Map();
    for (const origin of origins) {
      times.set(origin.url, (times.get(origin.url) ?? 0) + 1);
      origin.key = `${origin.url} ${times.get(origin.url)}`;
    }
    this.sites.show(sites.toSorted(worst));
    this.origins.show(origins.toSorted(worst));
    Dom.find("origins-empty").hidden = origins.length > 0;
  }

  async refreshCertificates() {
    const { certificates } = await this.api.json("/admin/v1/certificates");
    Dom.find("certificates").hidden = certificates.length === 0;
    this.certificates.show(certificates.toSorted((one, other) => one.days_left - other.days_left));
  }

  static #label(health) {
    return Nodes.stateLabel(Origins.#health[health] ?? { word: health, icon: "half", tone: "warn" });
  }

  static #error(error) {
    if (!error) return ["–"];
    const reason = Errors.reason(error.reason);
    const detail = error.detail && !reason.includes(error.detail) ? `: ${error.detail}` : "";
    return [Dom.make("span", {}, reason + detail), Dom.make("span", { class: "sub" }, Format.ago(error.ago_ms))];
  }

  static #site(site, change) {
    const { requests, bytes, responses, received } = change ?? { ...site, received: site.origin_received_bytes };
    const all = Timeline.sum(requests);
    const hits = Timeline.sum(requests, Timeline.hits);
    const sent = Timeline.sum(bytes);
    const per = (amount, format) => (change ? format(amount / change.seconds) : "–");
    const ratio = Timeline.share(hits, hits + requests.origin);
    const share = Timeline.share(responses["5xx"], all);
    const name = site.site === "*" ? "any host" : site.site === "images" ? "images by URL" : site.site;
    return [
      [name, Dom.make("span", { class: "sub" }, site.origins.join(", "))],
      [Origins.#label(site.health)],
      [per(all, Format.rate)],
      [Format.percent(ratio ?? NaN)],
      [share > 0 ? Dom.make("b", { class: "bad" }, Format.percent(share)) : Format.percent(share ?? NaN)],
      [per(sent, Format.byteRate)],
      [per(received, Format.byteRate)],
      Origins.#error(site.last_error),
    ];
  }

  static #origin(origin, change) {
    const { fetches, failed } = change?.fetches ? change : origin;
    const share = Timeline.share(failed, fetches);
    const period = change?.fetches ? Traffic.period(change) : "since the start";
    const circuit = origin.circuit === "closed" ? null : `circuit ${origin.circuit}`;
    const retry = origin.retry_after_ms === undefined ? null : `next try in ${Format.duration(origin.retry_after_ms)}`;
    const queue = origin.waiting > 0 ? Dom.make("b", { class: "warn" }, Format.count(origin.waiting)) : "0";
    const sub = (text) => Dom.make("span", { class: "sub" }, text);
    const reasons = Object.entries(origin.failures_by_reason).toSorted((one, other) => other[1] - one[1]).slice(0, 2)
      .map(([name, count]) => sub(`${Format.words(name)} ${Format.roughly(count)}`));
    return [
      [origin.url],
      [Origins.#label(origin.health), circuit ? sub([circuit, retry].filter(Boolean).join(", ")) : null],
      [Format.roughly(fetches), sub(period)],
      [failed > 0 ? Dom.make("b", { class: "bad" }, Format.percent(share)) : "0", ...reasons],
      [change ? Format.byteRate(change.received / change.seconds) : "–",
        sub(`${Format.bytes(origin.received_bytes)} in all`)],
      [queue],
      [Format.count(origin.connections), sub(`${Format.count(origin.idle)} idle`)],
      Origins.#error(origin.last_error),
    ];
  }

  static #certificate({ names, file, use, days_left: days, not_after: end }) {
    const [warning, critical] = Origins.#certificateDays;
    const [tone, icon] = days < critical ? ["bad", "cross"] : days < warning ? ["warn", "triangle"] : ["good", "full"];
    const word = days < 0 ? `expired ${Format.plural(-days, "day")} ago` : Format.plural(days, "day");
    return [
      [names.join(", ")],
      [Nodes.stateLabel({ word, icon, tone }), Dom.make("span", { class: "sub" }, `until ${end.slice(0, 10)}`)],
      [use],
      [Dom.make("span", { class: "address" }, file)],
    ];
  }
}
