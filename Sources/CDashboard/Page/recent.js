// Counters of the last minute. What happened within it is the difference of the newest and the oldest.
class Recent {
  // Documents of one time differ by the time they took to come.
  static #jitter = 500;

  #documents = [];

  constructor(span = 60_000) {
    this.span = span;
  }

  // True if a counter fell, which only a restart does: then nothing before it counts.
  add(at, counters) {
    const last = this.#documents.at(-1);
    const restarted = last !== undefined
      && (at < last.at - 2 * Recent.#jitter || Recent.#less(counters, last.counters) === null);
    if (restarted) this.#documents = [];
    else if (last !== undefined && at < last.at + Recent.#jitter / 2) return false;
    this.#documents.push({ at, counters });
    while (this.#documents.length > 1 && this.#documents[1].at <= at - this.span) this.#documents.shift();
    return restarted;
  }

  // What was counted in the last milliseconds, as far as that is known, with its time; null before there are two
  // documents.
  change(ms = this.span) {
    const last = this.#documents.at(-1);
    const first = this.#documents.find(({ at }) => at >= last.at - ms - Recent.#jitter);
    if (last === first) return null;
    const time = last.at - first.at;
    return { ms: time, seconds: time / 1000, ...Recent.#less(last.counters, first.counters) };
  }

  static #less(after, before) {
    if (typeof after === "number") return after < (before ?? 0) ? null : after - (before ?? 0);
    const less = Object.entries(after).map(([key, value]) => [key, Recent.#less(value, before?.[key])]);
    return less.some(([, value]) => value === null) ? null : Object.fromEntries(less);
  }
}
