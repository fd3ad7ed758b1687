// Server-sent events out of a byte stream. Chunks may split anywhere: inside a character, inside a CR LF.
class EventFrames {
  #decoder = new TextDecoder();
  #rest = "";
  #afterCR = false;
  #name = "";
  #data = [];

  // The events that these bytes complete, as [name, data].
  take(bytes) {
    let text = this.#decoder.decode(bytes, { stream: true });
    if (text === "") return [];
    if (this.#afterCR && text.startsWith("\n")) text = text.slice(1);
    this.#afterCR = text === "" ? false : text.endsWith("\r");
    const lines = (this.#rest + text).split(/\r\n|\r|\n/);
    this.#rest = lines.pop();
    return lines.map((line) => this.#line(line)).filter((event) => event !== null);
  }

  #line(line) {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#name = value;
    else if (field === "data") this.#data.push(value);
    return null;
  }

  #dispatch() {
    const event = this.#data.length > 0 ? [this.#name || "message", this.#data.join("\n")] : null;
    this.#name = "";
    this.#data = [];
    return event;
  }
}

// The node's figures each second, for as long as the page is open. By fetch: EventSource cannot send Authorization.
class Stream {
  // A live stream speaks each second; one that is silent for longer is taken for lost.
  static silenceMax = 8000;
  static waits = [500, 1000, 2000, 4000, 8000, 15_000];

  // Ends the present wait; nothing waits while the stream lives or begins.
  #wake = null;
  #attempt = 0;
  lostAt = null;
  // What the node itself said against it; null if it could not be reached at all.
  refusal = null;

  constructor(api, { received, changed }) {
    this.api = api;
    this.received = received;
    this.changed = changed;
    addEventListener("online", () => this.tryNow());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.tryNow();
    });
  }

  async run() {
    for (;;) {
      let wait = null;
      try {
        await this.#listen();
        this.refusal = null;
      } catch (error) {
        this.refusal = error instanceof Problem ? error.message : null;
        if (error.status === 401) wait = Infinity;
        else if (error.retryAfterMs) wait = error.retryAfterMs;
      }
      if (this.lostAt === null) {
        this.lostAt = performance.now();
        this.changed(false);
      }
      wait ??= Stream.waits[Math.min(this.#attempt, Stream.waits.length - 1)] * (0.75 + Math.random() / 2);
      this.#attempt += 1;
      this.#wake = new AbortController();
      await (wait === Infinity ? this.#woken() : Dom.pause(wait, this.#wake.signal));
      this.#wake = null;
    }
  }

  tryNow() {
    this.#wake?.abort();
  }

  #woken() {
    return new Promise((resolve) => this.#wake.signal.addEventListener("abort", resolve, { once: true }));
  }

  async #listen() {
    const abort = new AbortController();
    let watchdog = null;
    const alive = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => abort.abort(), Stream.silenceMax);
    };
    try {
      const answer = await this.api.open("/admin/v1/events", { signal: abort.signal });
      const reader = answer.body.getReader();
      const frames = new EventFrames();
      alive();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        alive();
        for (const [name, data] of frames.take(value)) {
          if (name === "statistics") this.#deliver(JSON.parse(data));
        }
      }
    } finally {
      clearTimeout(watchdog);
      abort.abort();
    }
  }

  #deliver(event) {
    this.#attempt = 0;
    if (this.lostAt !== null) {
      this.lostAt = null;
      this.changed(true);
    }
    this.received(event);
  }
}
