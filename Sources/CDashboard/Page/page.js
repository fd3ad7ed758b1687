// Brings the parts together: what comes in goes to whoever shows it.
class Page {
  static #purgesMin = 3000;

  // What is asked for again and again, each with its period in milliseconds.
  #polls = [
    [3000, () => this.#conditions(), true],
    [5000, () => this.origins.refresh()],
    [10_000, () => this.hot.refresh()],
    // Who was unreachable confirms without anything new.
    [15_000, () => this.purge.refresh()],
    [30_000, () => this.#ring()],
    [60_000, () => this.#history()],
    [60_000, () => this.#status()],
    [300_000, () => this.origins.refreshCertificates()],
  ];

  constructor() {
    new Theme();
    this.session = new Session();
    this.api = new Api(this.session);
    this.timeline = new Timeline();
    this.traffic = new Traffic(this.timeline);
    this.errors = new Errors();
    this.origins = new Origins(this.api);
    this.tiers = new Tiers();
    this.ring = new Ring();
    this.members = new Members(this.ring);
    this.inspect = new Inspect(this.api, (url) => this.purge.fill(url));
    this.hot = new Hot(this.api, this.inspect);
    this.purge = new Purge(this.api, this.session, () => this.#purged());
    this.drain = new Drain(this.api, this.session);
    this.stream = new Stream(this.api, {
      received: (event) => this.#received(event),
      changed: (live) => this.#changed(live),
    });
    this.state = new State(() => this.stream.tryNow(), () => this.session.reopen());
    this.event = null;
    this.paused = false;
    this.session.addEventListener("accepted", () => this.#accepted());
    this.session.addEventListener("declined", () => {
      this.locked = true;
      this.state.locked(true);
    });
    Dom.find("pause").addEventListener("click", () => this.#pause());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") Page.#closeHelp(null);
    });
    document.addEventListener("pointerdown", (event) => Page.#closeHelp(event.target));
  }

  start() {
    this.stream.run();
    this.#refresh();
    for (const [period, poll, inBackground] of this.#polls) {
      setInterval(() => this.#quietly(poll, inBackground), period);
    }
    setInterval(() => this.#tick(), 1000);
  }

  #refresh() {
    for (const [, poll, inBackground] of this.#polls) this.#quietly(poll, inBackground);
  }

  // What fails here is tried again by its timer, and the connection's notice has said why; while the connection is
  // lost nothing is asked. In the background only the title is seen, and there the state matters most.
  async #quietly(poll, inBackground = false) {
    if ((document.hidden && !inBackground) || this.paused || this.session.declined) return;
    if (this.stream.lostAt !== null) return;
    try {
      await poll();
    } catch (problem) {
      if (!(problem instanceof Problem) && problem.name !== "TypeError") throw problem;
    }
  }

  async #conditions() {
    this.state.conditions(await this.api.json("/admin/v1/conditions"));
  }

  async #history() {
    this.timeline.load(await this.api.json("/admin/v1/history"));
  }

  async #status() {
    const status = await this.api.json("/admin/v1/status");
    Nodes.self ??= status.node;
    this.members.version = status.version;
    this.state.status(status);
    this.session.setRole(status.role);
  }

  async #ring() {
    this.ringAnswer = await this.api.json("/admin/v1/ring");
    this.#drawRing();
  }

  #drawRing() {
    if (!this.ringAnswer) return;
    Nodes.learn([...this.ringAnswer.members, ...(this.event?.members ?? [])]);
    this.ring.show(this.ringAnswer, this.event?.members ?? [], this.event?.fenced ?? false);
  }

  #received(event) {
    const restarted = this.timeline.add(event);
    this.event = event;
    if (restarted) this.#refresh();
    if (this.paused) return;
    if (document.hidden) this.state.show(event, this.timeline.window(60_000)?.hitRatio);
    else this.#show();
  }

  #show() {
    const { event } = this;
    Nodes.learn(event.members);
    this.traffic.show();
    this.errors.show(this.timeline);
    this.state.show(event, this.traffic.ratio);
    this.drain.show(event.readiness);
    this.tiers.show(event);
    this.members.show(event.members, event.fenced);
    const makeUp = JSON.stringify([event.readiness, event.fenced, event.disk?.up, ...event.members.map((member) =>
      [member.node, member.name, member.state, member.connected, member.draining, member.caught_up])]);
    if (makeUp !== this.makeUp) {
      this.makeUp = makeUp;
      this.#drawRing();
      this.#quietly(() => this.#ring());
      this.#quietly(() => this.#conditions());
    }
    const { applied } = event.invalidations;
    if (applied !== this.applied && performance.now() - (this.purgesAt ?? 0) > Page.#purgesMin) {
      this.applied = applied;
      this.purgesAt = performance.now();
      this.#quietly(() => this.purge.refresh());
    }
  }

  #changed(live) {
    if (live) {
      this.#refresh();
      Dom.announce("Connected again.");
    } else if (!this.session.declined) {
      Dom.announce("Connection lost; reconnecting.");
    }
    this.#tick();
  }

  #tick() {
    const lost = this.stream.lostAt !== null && !this.session.declined;
    if (!this.paused) this.purge.tick();
    this.state.connection(lost ? performance.now() - this.stream.lostAt : null, this.stream.refusal);
    if (this.session.declined) this.state.live("Locked");
    else if (lost) this.state.live("Not connected");
    else if (this.paused) this.state.live("Paused");
    else this.state.live(this.event ? "Live" : "Connecting");
  }

  // Requests that waited for the token go on by themselves; only after "Not now" is there nothing that waits.
  #accepted() {
    Dom.announce("The token was accepted.");
    if (!this.locked) return;
    this.locked = false;
    this.state.locked(false);
    this.stream.tryNow();
    this.#refresh();
  }

  #pause() {
    this.paused = !this.paused;
    const button = Dom.find("pause");
    Dom.text(button, this.paused ? "Go on" : "Pause");
    if (!this.paused && this.event) {
      this.#show();
      this.#refresh();
    }
    this.#tick();
  }

  #purged() {
    this.#quietly(() => this.hot.refresh());
    this.inspect.refresh();
  }

  // Escape closes a help text and gives the focus back to what opened it; so does a press elsewhere, without the focus.
  static #closeHelp(pressed) {
    for (const help of document.querySelectorAll(".help[open]")) {
      if (pressed && help.contains(pressed)) continue;
      help.open = false;
      if (!pressed) help.querySelector("summary").focus();
    }
  }
}

new Page().start();
