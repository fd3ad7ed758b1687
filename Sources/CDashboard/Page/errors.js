// Responses by status class, and what made errors, by reason.
class Errors {
  static #classes = [
    ["2xx", "2xx success"], ["3xx", "3xx redirection, not modified"], ["4xx", "4xx client error"],
    ["5xx", "5xx server error"],
  ];
  static #refused = {
    fills: "Too many fetches (fills-limit)",
    share: "A site’s or client’s share of fetches",
    waiters: "Too many waiting requests (waiters-limit)",
    wait_time: "Waited too long (wait-timeout)",
    memory: "No memory (memory-limit)",
    origin_queue: "Origin’s queue is full",
    origin_circuit: "Origin’s circuit is open",
  };
  static #origin = {
    not_allowed: "Origin’s address is not allowed",
    name: "Origin’s name is not resolved",
    connect: "Origin does not accept connections",
    tls: "TLS with the origin fails",
    timeout: "Origin takes too long",
    broken: "Origin breaks the connection off",
    protocol: "Origin’s response is invalid",
    too_large: "Response is too large",
    redirects: "Too many redirects",
    circuit: "Origin’s circuit is open",
    limit: "Limit on connections or queue",
    stopping: "This node is stopping",
  };

  constructor() {
    this.body = Dom.find("error-rows");
  }

  // A reason for a failed fetch, as a sentence would name it.
  static reason(name) {
    return Errors.#origin[name] ?? Format.words(name);
  }

  show({ counters, recent }) {
    const change = recent.change();
    const rows = [Errors.#group("Responses")];
    const all = change ? Timeline.sum(change.responses, Object.keys(change.responses)) : 0;
    const classes = counters.responses["1xx"] > 0 ? [["1xx", "1xx informational"], ...Errors.#classes] : Errors.#classes;
    for (const [name, words] of classes) {
      const share = all > 0 ? Format.percent(change.responses[name] / all) : "–";
      rows.push(Errors.#row(words, share, counters.responses[name], name === "5xx" && change?.responses[name] > 0));
    }
    this.#reasons(rows, "Requests refused with 503", Errors.#refused, counters.errors.refused, change?.errors.refused);
    this.#reasons(rows, "Failed fetches", Errors.#origin, counters.errors.origin, change?.errors.origin);
    Dom.renew(this.body, ...rows);
  }

  #reasons(rows, title, names, counts, change) {
    const present = Object.entries(counts).filter(([, count]) => count > 0).toSorted((one, other) => other[1] - one[1]);
    rows.push(Errors.#group(title));
    for (const [name, count] of present) {
      const last = change?.[name] ?? null;
      const words = names[name] ?? Format.words(name);
      rows.push(Errors.#row(words, last === null ? "–" : Format.count(last), count, last > 0));
    }
    if (present.length === 0) rows.push(Errors.#row("None", "", ""));
  }

  static #group(name) {
    return Dom.make("tr", { class: "group" }, Dom.make("th", { scope: "rowgroup", colspan: 3 }, name));
  }

  static #row(words, minute, total, isBad = false) {
    return Dom.make("tr", { class: isBad ? "bad" : null }, Dom.make("th", { scope: "row" }, words),
      Dom.make("td", {}, minute), Dom.make("td", {}, total === "" ? "" : Format.roughly(total)));
  }
}
