// Five minutes of differences between cumulative counters, and the figures that follow from them.
class Timeline {
  static span = 300_000;
  // A difference over longer than this spans a lost connection: it is counted, but not drawn as a line.
  static gapMin = 5000;
  static hits = ["memory", "disk", "peer", "collapsed", "revalidated", "stale"];
  static uncounted = ["passed", "none"];
  static kinds = [...Timeline.hits, "origin", ...Timeline.uncounted];
  static tiers = ["memory", "disk", "peer", "origin"];

  #last = null;
  #steps = [];
  // What the charts draw: one point for each step, each figure a mean over a few seconds before it.
  points = [];

  // True if the counters began anew: the node was restarted.
  add(event, now = performance.now()) {
    const before = this.#last;
    this.#last = event;
    if (before === null) return false;
    const step = Timeline.#difference(before, event);
    if (step === null) {
      this.points.push({ at: now, gap: true });
      return true;
    }
    step.from = now - step.ms;
    step.to = now;
    this.#steps.push(step);
    if (step.ms > Timeline.gapMin) this.points.push({ at: step.from, gap: true });
    this.points.push(this.#point(now));
    const oldest = now - Timeline.span - 2000;
    while (this.#steps.length > 0 && this.#steps[0].to < oldest) this.#steps.shift();
    while (this.points.length > 0 && this.points[0].at < oldest) this.points.shift();
    return false;
  }

  // All steps that lie within a period, added up; null if there is none.
  window(ms, end = performance.now()) {
    const steps = this.#steps.filter((step) => step.from >= end - ms - 1000 && step.to <= end);
    return Timeline.#sum(steps, this.#last?.latency.bounds_us);
  }

  // Everything since the node started, in the same form.
  get total() {
    const event = this.#last;
    return event && Timeline.#figures({
      ms: event.at_ms,
      requests: event.requests,
      sent: Timeline.#all(event.bytes),
      ...Timeline.#origin(event),
    });
  }

  #point(now) {
    const brief = this.window(5000, now);
    const ratio = this.window(10_000, now);
    const minute = this.window(60_000, now);
    return {
      at: now,
      hitRatio: ratio?.hitRatio ?? null,
      hits: brief ? brief.hits / brief.seconds : 0,
      misses: brief ? brief.misses / brief.seconds : 0,
      others: brief ? brief.others / brief.seconds : 0,
      received: brief ? brief.received / brief.seconds : 0,
      saved: brief ? Math.max(0, brief.saved) / brief.seconds : 0,
      ...Object.fromEntries(Timeline.tiers.map((tier) => [tier, minute?.latency[tier].p99 ?? null])),
    };
  }

  static #all(counts) {
    return Timeline.kinds.reduce((sum, kind) => sum + (counts[kind] ?? 0), 0);
  }

  static #origin({ origin }) {
    const { received_bytes: received, fetches_ok: ok, fetches_failed: failed } = origin;
    return { received, fetches: ok + failed, failed };
  }

  static #difference(before, after) {
    const requests = {};
    for (const kind of Timeline.kinds) requests[kind] = after.requests[kind] - before.requests[kind];
    const latency = {};
    for (const tier of Timeline.tiers) {
      latency[tier] = after.latency[tier].map((count, index) => count - before.latency[tier][index]);
    }
    const step = {
      ms: after.at_ms - before.at_ms,
      requests,
      latency,
      sent: Timeline.#all(after.bytes) - Timeline.#all(before.bytes),
    };
    const [origin, originBefore] = [Timeline.#origin(after), Timeline.#origin(before)];
    for (const key of Object.keys(origin)) step[key] = origin[key] - originBefore[key];
    const buckets = Object.values(latency).flat();
    const least = Math.min(...Object.values(requests), ...buckets, step.sent, step.received, step.fetches);
    return step.ms <= 0 || least < 0 ? null : step;
  }

  static #sum(steps, bounds) {
    if (steps.length === 0) return null;
    const sum = { ms: 0, requests: {}, sent: 0, received: 0, fetches: 0, failed: 0 };
    const latency = {};
    for (const kind of Timeline.kinds) sum.requests[kind] = 0;
    for (const tier of Timeline.tiers) latency[tier] = new Array(bounds.length + 1).fill(0);
    for (const step of steps) {
      sum.ms += step.ms;
      sum.sent += step.sent;
      sum.received += step.received;
      sum.fetches += step.fetches;
      sum.failed += step.failed;
      for (const kind of Timeline.kinds) sum.requests[kind] += step.requests[kind];
      for (const tier of Timeline.tiers) {
        step.latency[tier].forEach((count, index) => { latency[tier][index] += count; });
      }
    }
    const figures = Timeline.#figures(sum);
    figures.latency = {};
    for (const tier of Timeline.tiers) {
      figures.latency[tier] = {
        count: latency[tier].reduce((total, count) => total + count, 0),
        p50: Timeline.quantile(latency[tier], bounds, 0.5),
        p99: Timeline.quantile(latency[tier], bounds, 0.99),
      };
    }
    return figures;
  }

  static #figures({ ms, requests, sent, received, fetches, failed }) {
    const count = (kinds) => kinds.reduce((sum, kind) => sum + requests[kind], 0);
    const hits = count(Timeline.hits);
    const misses = requests.origin;
    const others = count(Timeline.uncounted);
    return {
      ms, seconds: ms / 1000, requests, sent, received, fetches, failed, hits, misses, others,
      all: hits + misses + others,
      hitRatio: hits + misses > 0 ? hits / (hits + misses) : null,
      saved: sent - received,
      savedShare: sent > 0 ? (sent - received) / sent : null,
    };
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
