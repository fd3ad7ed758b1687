// The hottest images as tiles. A tile lives as long as its key stays hot, so a refresh moves tiles without flicker.
class Hot {
  static #limit = 12;
  // The body is fetched whole for a thumbnail: above this size a tile does without.
  static #previewMax = 4 * 1024 * 1024;
  static #fetchesMax = 3;

  constructor(api, inspect) {
    this.api = api;
    this.inspect = inspect;
    this.list = Dom.find("hot");
    this.empty = Dom.find("hot-empty");
    this.tiles = new Map();
    this.waiting = [];
    this.fetching = 0;
  }

  async refresh() {
    const { entries } = await this.api.json(`/admin/v1/hot?limit=${Hot.#limit}`);
    const present = new Set(entries.map((entry) => entry.key));
    for (const [key, tile] of this.tiles) {
      if (!present.has(key)) this.#drop(key, tile);
    }
    for (const entry of entries) this.#update(entry);
    const order = entries.map((entry) => this.tiles.get(entry.key).element);
    if (order.some((element, index) => this.list.children[index] !== element)) {
      const focused = document.activeElement;
      this.list.replaceChildren(...order);
      if (this.list.contains(focused)) focused.focus();
    }
    this.list.hidden = entries.length === 0;
    this.empty.hidden = entries.length > 0;
    this.empty.textContent = "Nothing is stored here yet. Images appear when clients request them from this node.";
  }

  #update(entry) {
    let tile = this.tiles.get(entry.key);
    // Another size or type: the image was replaced since, and so must its picture be. (Accesses fall by
    // themselves as they age.)
    if (tile && (tile.entry.body_bytes !== entry.body_bytes || tile.entry.content_type !== entry.content_type)) {
      this.#drop(entry.key, tile);
      tile = undefined;
    }
    tile ??= this.#add(entry);
    tile.entry = entry;
    Dom.text(tile.meta, `${entry.tier} · ${Format.bytes(entry.body_bytes)}`);
    Dom.text(tile.accesses, Format.plural(entry.accesses, "access", "accesses"));
  }

  #add(entry) {
    const tile = {
      entry,
      picture: Dom.make("span", { class: "thumb" }, Hot.blank(entry.content_type)),
      meta: Dom.make("span", { class: "meta" }),
      accesses: Dom.make("span", { class: "meta" }),
    };
    tile.element = Dom.make("li", {}, Dom.make("button", {
      type: "button", title: entry.url, onclick: () => this.inspect.open(tile.entry.url),
    }, tile.picture, Hot.#title(entry.url), tile.accesses, tile.meta));
    this.tiles.set(entry.key, tile);
    if (entry.content_type?.startsWith("image/") && entry.body_bytes <= Hot.#previewMax) {
      this.waiting.push(tile);
      this.#fetchNext();
    }
    return tile;
  }

  #drop(key, tile) {
    tile.dropped = true;
    if (tile.blob) URL.revokeObjectURL(tile.blob);
    tile.element.remove();
    this.tiles.delete(key);
  }

  async #fetchNext() {
    if (this.fetching >= Hot.#fetchesMax) return;
    const tile = this.waiting.shift();
    if (!tile) return;
    this.fetching += 1;
    try {
      if (!tile.dropped) await this.#fetch(tile);
    } catch {
      // Evicted since, or not to be had now: the neutral tile says enough.
    } finally {
      this.fetching -= 1;
      this.#fetchNext();
    }
  }

  async #fetch(tile) {
    const { url, key } = tile.entry;
    const query = new URLSearchParams({ url, key });
    const blob = await this.api.blob(`/admin/v1/entry/body?${query}`);
    if (tile.dropped) return;
    tile.blob = URL.createObjectURL(blob);
    const image = Dom.make("img", { alt: "" });
    image.src = tile.blob;
    // Put into the page once it can be drawn: until then the tile is neutral, not empty.
    const isDrawn = await image.decode().then(() => true, () => false);
    if (isDrawn) image.className = Hot.#fit(image);
    tile.picture.replaceChildren(isDrawn ? image : Hot.blank("broken"));
  }

  // A photograph fills its tile; an icon or a banner is shown whole, and never enlarged.
  static #fit({ naturalWidth, naturalHeight }) {
    const ratio = naturalWidth / naturalHeight;
    return naturalWidth >= 180 && naturalHeight >= 120 && ratio > 0.6 && ratio < 2.4 ? "cover" : "whole";
  }

  // One picture in many sizes is told apart by its query: of a long name that stays in sight.
  static #title(url) {
    const query = URL.canParse(url) ? new URL(url).search : "";
    const name = Hot.name(url);
    return Dom.make("span", { class: "name" }, Dom.make("span", {}, name),
      query && !name.endsWith(query) ? Dom.make("span", { class: "query" }, query) : null);
  }

  static name(url) {
    try {
      const { pathname, hostname, search } = new URL(url);
      const last = pathname.split("/").filter(Boolean).at(-1);
      return last ? decodeURIComponent(last) : hostname + search;
    } catch {
      return url;
    }
  }

  // Stands for a picture that has not come yet, is none, or cannot be drawn.
  static blank(type) {
    const words = type === "broken" ? "cannot be shown" : type?.replace("image/", "") || "no type";
    return Dom.make("span", { class: "blank" }, words);
  }
}
