// The node itself: its name and state at the top, in the title, and in notices that say what a state means.
class State {
  static #meanings = {
    starting: "This node is starting. It reads its disk and joins the cluster before it serves.",
    joining: "This node is looking for its cluster and does not serve yet; nuthatch status names the seeds that do not "
      + "respond.",
    draining: "This node is draining: it is off the ring, hands off its entries, and responds to /readyz with 503. "
      + "It still serves requests.",
    fenced: "This node cannot reach a majority and may lack purges, so it revalidates each entry once before it serves it.",
    noDisk: "The disk tier is down. Images are served from memory and the origin; the node’s log has the reason.",
  };

  constructor(retry, unlock) {
    this.retry = retry;
    this.unlock = unlock;
    this.notices = new Map();
    this.name = null;
  }

  status(status) {
    if (this.name !== status.node) {
      this.name = status.node;
      Dom.put("node-name", `Node ${Nodes.short(status.node)}`);
      Dom.find("node-id").replaceChildren(Nodes.button(status.node, status.node));
    }
    this.title();
    Dom.put("version", status.version);
    Dom.put("role", status.role);
  }

  show(event, hitRatio) {
    const { readiness, fenced, fenced_ms, disk, cluster } = event;
    const words = [...(readiness === "ready" ? [] : [readiness]), ...(fenced ? ["fenced"] : [])];
    const state = words.length === 0 ? { word: "Ready", icon: "full", tone: "good" } : {
      word: Format.list(words).replace(/^./, (letter) => letter.toUpperCase()),
      icon: fenced ? "square" : "half",
      tone: fenced ? "bad" : "warn",
    };
    if (this.word !== state.word) {
      const chip = Dom.find("state");
      chip.className = `chip ${state.tone}`;
      chip.replaceChildren(Dom.icon(state.icon), state.word);
      const meaning = words.map((word) => State.#meanings[word]).join(" ");
      if (this.word) Dom.announce(`The node is now ${state.word.toLowerCase()}. ${meaning}`);
      this.word = state.word;
    }
    this.ratio = hitRatio;
    this.mark = fenced ? "■" : readiness === "ready" ? "●" : "◐";
    Dom.put("uptime", Format.seconds(event.at_ms));
    Dom.put("cluster-count", cluster ? `${cluster.members_alive} of ${cluster.members_counted} alive` : "none");
    for (const word of ["starting", "joining", "draining"]) this.notice(word, readiness === word ? State.#meanings[word] : null);
    const since = fenced_ms === null ? "" : ` Fenced for ${Format.seconds(fenced_ms)}.`;
    this.notice("fenced", fenced ? State.#meanings.fenced + since : null);
    this.notice("disk", disk && !disk.up ? State.#meanings.noDisk : null);
    this.title();
  }

  // The tab says the state even where the page is not seen.
  title() {
    const ratio = this.ratio === null || this.ratio === undefined ? null : `${Format.percent(this.ratio)} hits`;
    const node = this.name ? `${this.lost ? "○" : this.mark ?? "○"} node ${Nodes.short(this.name)}` : null;
    document.title = [node, this.lost ? "not connected" : ratio, "Nuthatch"].filter(Boolean).join(" · ");
  }

  live(word) {
    const label = Dom.find("live");
    Dom.text(label, word);
    label.dataset.live = word;
  }

  // Old figures stay on the page; this says how old they are.
  connection(lostMs, refusal) {
    this.lost = lostMs !== null;
    document.documentElement.toggleAttribute("data-lost", this.lost);
    const cause = refusal ?? `Connection lost ${Format.ago(lostMs)}, trying again.`;
    const words = this.word ? `${cause} The figures are from before the interruption.` : cause;
    this.notice("lost", this.lost ? words : null, ["Try now", this.retry]);
    this.title();
  }

  locked(locked) {
    const words = "This node requires a token.";
    this.notice("locked", locked ? words : null, ["Enter the token…", this.unlock]);
    if (!this.word) Dom.put("state", locked ? "Locked" : "Connecting");
    if (locked) this.notice("lost", null);
  }

  // Kept and rewritten in place: the button in it keeps its focus while the seconds pass.
  notice(name, text, action) {
    let notice = this.notices.get(name);
    if (text === null) {
      notice?.element.remove();
      this.notices.delete(name);
      return;
    }
    if (!notice) {
      const words = Dom.make("span");
      const button = action ? Dom.make("button", { type: "button", onclick: action[1] }, action[0]) : null;
      notice = { words, element: Dom.make("p", { class: `notice ${name}` }, words, button) };
      this.notices.set(name, notice);
      Dom.find("notices").append(notice.element);
    }
    Dom.text(notice.words, text);
  }
}
