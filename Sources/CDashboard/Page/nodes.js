// What the page says about a node wherever one appears: short id, colour, state in words.
const Nodes = {
  colours: 12,
  assigned: new Map(),
  names: new Map(),
  self: null,

  short(id) {
    return id.slice(0, 6);
  },

  // What its operator calls it, or else its short id.
  name(id) {
    return Nodes.names.get(id) ?? Nodes.short(id);
  },

  // A node keeps its colour for as long as the page is open. This node is always the first, the accent.
  learn(members) {
    Nodes.self = members.find((member) => member.self)?.node ?? Nodes.self;
    for (const { node, name } of members) {
      if (name) Nodes.names.set(node, name);
    }
    const others = members.map((member) => member.node).filter((id) => id !== Nodes.self).sort();
    for (const id of others) {
      if (!Nodes.assigned.has(id)) Nodes.assigned.set(id, 1 + (Nodes.assigned.size % (Nodes.colours - 1)));
    }
  },

  colour(id) {
    return id === Nodes.self ? "n0" : `n${Nodes.assigned.get(id) ?? 0}`;
  },

  // What matters most comes first: a dead node's other flags are of the past.
  state(member, fenced = false) {
    if (member.state === "dead") return { word: "dead", icon: "cross", tone: "bad" };
    if (member.state === "left") return { word: "left", icon: "open", tone: "faint" };
    if (member.state === "unknown") return { word: "unknown", icon: "open", tone: "faint" };
    if (member.state === "suspected") return { word: "suspected", icon: "triangle", tone: "warn" };
    if (member.self && fenced) return { word: "fenced", icon: "square", tone: "bad" };
    if (member.draining) return { word: "draining", icon: "half", tone: "warn" };
    if (!member.caught_up) return { word: "catching up", icon: "half", tone: "warn" };
    return { word: "alive", icon: "full", tone: "good" };
  },

  swatch(id) {
    return Dom.make("span", { class: `swatch ${Nodes.colour(id)}` });
  },

  stateLabel({ word, icon, tone }) {
    return Dom.make("span", { class: `state ${tone}` }, Dom.icon(icon), word);
  },

  // The short id; the whole of it on hover and focus, and on the clipboard when pressed.
  button(id, shown = Nodes.short(id)) {
    const hint = shown === id ? "Press to copy" : id;
    const tip = Dom.make("span", { class: "tip", "aria-hidden": "true" }, hint);
    const label = `Node ${Nodes.short(id)}, copy the full id`;
    const button = Dom.make("button", { type: "button", class: "id", "aria-label": label }, shown, tip);
    button.addEventListener("click", async () => {
      const copied = await Nodes.copy(id);
      tip.textContent = copied ? "Copied" : id;
      Dom.announce(copied ? `Copied ${id}` : `The browser did not allow copying. The id is ${id}`);
      setTimeout(() => { tip.textContent = hint; }, 1500);
    });
    return button;
  },

  // The clipboard proper is for secure contexts only; a node reached over plain HTTP needs the older way.
  async copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const field = Dom.make("textarea", { class: "unseen", "aria-hidden": "true" });
      const focused = document.activeElement;
      field.value = text;
      document.body.append(field);
      field.select();
      const copied = document.execCommand("copy");
      field.remove();
      focused?.focus();
      return copied;
    }
  },
};
