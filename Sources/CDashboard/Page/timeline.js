// The node's history, an hour in steps of ten seconds, and after it the steps that the stream has told since.
class Timeline {
  static step = 10_000;
  static hour = 3_600_000;
  static hits = ["memory", "disk", "peer", "collapsed", "revalidated", "stale"];
  static uncounted = ["passed", "none"];
  static kinds = [...Timeline.hits, "origin", ...Timeline.uncounted];
  static tiers = ["memory", "disk", "peer", "origin"];

  // Amounts between two times of the node's uptime, the oldest first.
  #steps = [];
  // The counters at the end of the last step, and now.
  #begun = null;
  #last = null;
  recent = new Recent();

  // True if the counters began anew: the node was restarted.
  add(event) {
    const { at_ms: at, requests, bytes, origin, latency, responses, errors } = event;
    const counters = { requests, bytes, origin, latency, responses, errors };
    const restarted = this.recent.add(at, counters);
    if (restarted) {
      this.#steps = [];
      this.#begun = null;
    }
    this.#last = { at, counters };
    this.#begun ??= this.#last;
    if (at - this.#begun.at >= Timeline.step) {
      this.#steps.push(this.#open());
      this.#steps = this.#steps.filter((step) => step.to > at - Timeline.hour);
      this.#begun = this.#last;
    }
    return restarted;
  }

  // The node's own record takes the place of what the stream told of the same time.
  load({ interval_ms, newest_ms, ...columns }) {
    const count = columns.requests.length;
    const known = columns.requests.map((requests, index) => {
      const to = newest_ms - (count - 1 - index) * interval_ms;
      const at = (name) => columns[name][index];
      return {
        from: to - interval_ms, to, requests, hits: at("hits"), misses: at("misses"),
        errors4xx: at("errors_4xx"), errors5xx: at("errors_5xx"),
        sent: at("sent_bytes"), received: at("origin_bytes"), failed: at("origin_failed"),
        p50: at("p50_us") || null, p99: at("p99_us") || null,
      };
    });
    this.#steps = [...known, ...this.#steps.filter(({ from, to }) => (from + to) / 2 > newest_ms)];
  }

  get now() {
    return this.#last?.at ?? 0;
  }

  // The last five minutes, quarter of an hour or hour: the least that holds all there is.
  get span() {
    const age = this.now - (this.#steps[0]?.from ?? this.now);
    return [300_000, 900_000].find((span) => age <= span) ?? Timeline.hour;
  }

  // The step that has begun, or null within its first second.
  #open() {
    const [from, to] = [this.#begun, this.#last];
    if (from === null || to.at - from.at < 1000) return null;
    const counters = new Recent();
    counters.add(from.at, from.counters);
    counters.add(to.at, to.counters);
    const { requests, bytes, origin, latency, responses } = counters.change();
    const buckets = Timeline.tiers.map((tier) => Object.values(latency[tier]))
      .reduce((sum, tier) => sum.map((amount, index) => amount + tier[index]));
    const quantile = (share) => Timeline.quantile(buckets, to.counters.latency.bounds_us, share);
    return {
      from: from.at, to: to.at, requests: Timeline.sum(requests),
      hits: Timeline.sum(requests, Timeline.hits), misses: requests.origin,
      errors4xx: responses["4xx"], errors5xx: responses["5xx"],
      sent: Timeline.sum(bytes), received: origin.received_bytes, failed: origin.fetches_failed,
      p50: quantile(0.5), p99: quantile(0.99),
    };
  }

  #all() {
    return [...this.#steps, this.#open()].filter((step) => step !== null);
  }

  // What the charts draw: one point for each step.
  get points() {
    return this.#all().map((step) => {
      const figures = Timeline.figures(step);
      return {
        at: step.to,
        from: step.from,
        hitRatio: figures.hitRatio,
        errors5xx: step.errors5xx / figures.seconds,
        errors4xx: step.errors4xx / figures.seconds,
        successes: Math.max(0, step.requests - step.errors4xx - step.errors5xx) / figures.seconds,
        received: step.received / figures.seconds,
        saved: Math.max(0, figures.saved) / figures.seconds,
        p50: step.p50,
        p99: step.p99,
      };
    });
  }

  // The steps within a time before now, added up; null if there is none.
  window(ms, ago = 0) {
    const end = this.now - ago;
    const steps = this.#all().filter(({ from, to }) => (from + to) / 2 > end - ms && (from + to) / 2 <= end);
    if (steps.length === 0) return null;
    const sum = (key) => steps.reduce((total, step) => total + step[key], 0);
    const keys = ["requests", "hits", "misses", "errors4xx", "errors5xx", "sent", "received", "failed"];
    return Timeline.figures({
      from: 0, to: steps.reduce((total, { from, to }) => total + to - from, 0),
      ...Object.fromEntries(keys.map((key) => [key, sum(key)])),
      p99: Math.max(...steps.map((step) => step.p99 ?? 0)),
    });
  }

  // Everything since the node started, in the same form.
  get total() {
    if (this.#last === null) return null;
    const { requests, bytes, origin, responses } = this.#last.counters;
    return Timeline.figures({
      from: 0, to: this.#last.at, requests: Timeline.sum(requests),
      hits: Timeline.sum(requests, Timeline.hits), misses: requests.origin,
      errors4xx: responses["4xx"], errors5xx: responses["5xx"],
      sent: Timeline.sum(bytes), received: origin.received_bytes, failed: origin.fetches_failed,
    });
  }

  get counters() {
    return this.#last.counters;
  }

  static sum(counts, kinds = Timeline.kinds) {
    return kinds.reduce((sum, kind) => sum + (counts[kind] ?? 0), 0);
  }

  static figures(step) {
    const { from, to, requests, hits, misses, errors5xx, sent, received } = step;
    return {
      ...step,
      ms: to - from,
      seconds: (to - from) / 1000,
      hitRatio: Timeline.share(hits, hits + misses),
      share5xx: Timeline.share(errors5xx, requests),
      saved: sent - received,
      savedShare: Timeline.share(sent - received, sent),
    };
  }

  // Null without a whole: no request is not a ratio of zero.
  static share(part, whole) {
    return whole > 0 ? part / whole : null;
  }

  // Interpolated inside the bucket that holds the quantile. Above the last bound nothing is known but that.
  static quantile(counts, bounds, share) {
    const total = counts.reduce((sum, count) => sum + count, 0);
    if (total === 0) return null;
    let rank = share * total;
    for (let bucket = 0; bucket < counts.length; bucket += 1) {
      if (rank > counts[bucket]) {
        rank -= counts[bucket];
        continue;
      }
      if (bucket === bounds.length) return Infinity;
      const low = bucket === 0 ? 0 : bounds[bucket - 1];
      return low + ((bounds[bucket] - low) * rank) / counts[bucket];
    }
    return Infinity;
  }
}
