// Makes elements. Text from outside only ever becomes a text node: nothing here parses markup.
const Dom = {
  find(id) {
    return document.getElementById(id);
  },

  make(tag, attributes = {}, ...children) {
    return Dom.fill(document.createElement(tag), attributes, children);
  },

  draw(tag, attributes = {}, ...children) {
    return Dom.fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  },

  fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  },

  // Writes only what changed, so that a reader's selection survives the next second.
  text(element, text) {
    if (element.textContent !== text) element.textContent = text;
  },

  // Replaces children only if they differ, for the same reason, and never under the focus.
  renew(element, ...children) {
    if (element.contains(document.activeElement)) return;
    const next = children.filter((child) => child !== null && child !== undefined && child !== "");
    const isSame = (node, child) => (typeof child === "string"
      ? node.nodeType === Node.TEXT_NODE && node.data === child
      : node === child || node.isEqualNode(child));
    const nodes = [...element.childNodes];
    if (nodes.length === next.length && nodes.every((node, index) => isSame(node, next[index]))) return;
    element.replaceChildren(...next);
  },

  put(id, text) {
    Dom.text(Dom.find(id), text);
  },

  attribute(element, name, value) {
    if (element.getAttribute(name) !== value) element.setAttribute(name, value);
  },

  pairs(list, entries) {
    list.replaceChildren(...entries.map(([term, ...details]) =>
      Dom.make("div", {}, Dom.make("dt", {}, term), Dom.make("dd", {}, ...details))));
    return list;
  },

  // Shapes differ, not only colours: a state can be told apart without seeing either.
  icon(name) {
    const shapes = {
      full: "M6 1a5 5 0 1 0 0 10A5 5 0 1 0 6 1z",
      half: "M6 1a5 5 0 1 0 0 10A5 5 0 1 0 6 1zM6 2.6v6.8a3.4 3.4 0 0 1 0-6.8z",
      open: "M6 1a5 5 0 1 0 0 10A5 5 0 1 0 6 1zM6 2.8a3.2 3.2 0 1 1 0 6.4 3.2 3.2 0 1 1 0-6.4z",
      square: "M1.5 1.5h9v9h-9z",
      triangle: "M6 .8l5.6 10.4H.4z",
      cross: "M2.2.8L6 4.6 9.8.8l1.4 1.4L7.4 6l3.8 3.8-1.4 1.4L6 7.4l-3.8 3.8L.8 9.8 4.6 6 .8 2.2z",
      tick: "M4.6 10.6L.6 6.6l1.5-1.5 2.5 2.5L9.9 2.2l1.5 1.5z",
    };
    return Dom.draw("svg", { class: "icon", viewBox: "0 0 12 12", "aria-hidden": "true" },
      Dom.draw("path", { d: shapes[name], "fill-rule": "evenodd" }));
  },

  // For changes of state only: a screen reader speaks each of these.
  announce(text) {
    Dom.text(Dom.find("announce"), text);
  },

  pause(ms, signal) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      signal?.addEventListener("abort", () => {
        clearTimeout(timer);
        resolve();
      }, { once: true });
    });
  },
};
