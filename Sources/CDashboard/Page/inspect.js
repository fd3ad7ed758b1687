// One URL: its variants on this node, and how the node would serve them now.
class Inspect {
  static #pictureMax = 16 * 1024 * 1024;
  static #verdicts = {
    fresh: ["good", "full", "Fresh"],
    stale: ["warn", "half", "Stale"],
    revalidate: ["warn", "triangle", "Revalidate"],
    refetch: ["bad", "cross", "Refetch"],
  };

  constructor(api, purgeThis) {
    this.api = api;
    this.purgeThis = purgeThis;
    this.field = Dom.find("inspect-url");
    this.result = Dom.find("inspect-result");
    this.blob = null;
    this.turn = 0;
    Dom.find("inspect-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.show(this.field.value.trim());
    });
    document.addEventListener("keydown", (event) => this.#shortcut(event));
  }

  // From elsewhere on the page: fills the field, shows the result and takes the reader there.
  async open(url) {
    this.field.value = url;
    await this.show(url);
    Dom.find("inspect").scrollIntoView();
    this.result.querySelector("h3")?.focus({ preventScroll: true });
  }

  // After a purge, what is shown may be gone.
  refresh() {
    if (this.url) this.show(this.url, false);
  }

  async show(url, aloud = true) {
    this.turn += 1;
    const turn = this.turn;
    this.url = null;
    if (!URL.canParse(url)) {
      this.#say("Enter an absolute URL, such as https://www.example.com/photo.jpg");
      this.field.focus();
      return;
    }
    try {
      const entry = await this.api.json(`/admin/v1/entry?url=${encodeURIComponent(url)}`);
      if (turn !== this.turn) return;
      this.url = url;
      this.entry = entry;
      this.#variant(0);
      if (aloud) Dom.announce(`${Hot.name(url)}: ${entry.variants[0].verdict}, ${entry.variants[0].why}`);
    } catch (problem) {
      if (turn !== this.turn) return;
      if (problem.type?.endsWith("entry-unknown")) this.#unknown(url, problem.rest.owners ?? [], aloud);
      else this.#say(problem.status ? problem.message : "This node cannot be reached at the moment.");
    }
  }

  #show(...content) {
    this.#forgetPicture();
    this.result.replaceChildren(...content);
    this.result.hidden = false;
  }

  #say(text) {
    this.#show(Dom.make("p", { class: "empty", role: "alert" }, text));
  }

  #unknown(url, owners, aloud) {
    this.#show(
      Dom.make("h3", { tabindex: "-1" }, Hot.name(url)),
      Dom.make("p", { class: "empty" }, owners.length === 0 || (owners.length === 1 && owners[0] === Nodes.self)
        ? "Not stored here. The next request fetches it from the origin."
        : "Not stored on this node. If any node has it, it is most likely an owner:"),
      Dom.make("p", { class: "ids" }, ...owners.map((id) => this.#owner(id))),
    );
    if (aloud) Dom.announce(`${Hot.name(url)} is not stored on this node`);
  }

  #owner(id) {
    return Dom.make("span", { class: "owner" }, Nodes.swatch(id), Nodes.button(id, Nodes.name(id)),
      id === Nodes.self ? Dom.make("span", { class: "self" }, "this node") : null);
  }

  #variant(index) {
    const variant = this.entry.variants[index];
    const [tone, icon, word] = Inspect.#verdicts[variant.verdict] ?? ["warn", "half", variant.verdict];
    const sentence = Inspect.#sentence(word, variant.why);
    const picture = Dom.make("div", { class: "picture" }, Hot.blank(variant.content_type));
    const pixels = Dom.make("span", {}, "–");
    this.#show(
      Dom.make("div", { class: "inspected" },
        Dom.make("div", {}, picture, this.#head(variant)),
        Dom.make("div", { class: "about" },
          Dom.make("h3", { tabindex: "-1" }, Hot.name(this.entry.url)),
          this.#choice(index),
          Dom.make("p", { class: "verdict" }, Nodes.stateLabel({ tone, icon, word: sentence })),
          Dom.pairs(Dom.make("dl", { class: "pairs" }), this.#facts(variant, pixels)),
          Dom.make("div", { class: "buttons" },
            Dom.make("button", { type: "button", onclick: () => this.purgeThis(this.entry.url) }, "Purge this…")),
        )),
    );
    this.#draw(variant, picture, pixels, this.turn);
  }

  // "fresh for another 58 min" begins with the verdict; other reasons need it in front.
  static #sentence(word, why) {
    return why.toLowerCase().startsWith(word.toLowerCase()) ? word + why.slice(word.length) : `${word}: ${why}`;
  }

  #choice(chosen) {
    const { variants } = this.entry;
    if (variants.length < 2) return null;
    return Dom.make("fieldset", { class: "switch variants" }, Dom.make("legend", {}, `${variants.length} variants`),
      ...variants.map((variant, index) => Dom.make("label", {},
        Dom.make("input", {
          type: "radio", name: "variant", checked: index === chosen,
          onchange: () => {
            this.#variant(index);
            this.result.querySelector(`input[name=variant][value="${index}"]`).focus();
          },
          value: index,
        }),
        Dom.make("span", {}, variant.content_type.replace("image/", "")))));
  }

  #facts(variant, pixels) {
    const fresh = variant.fresh_ms >= 0
      ? ["Fresh for", Format.duration(variant.fresh_ms)]
      : ["Stale for", Format.duration(-variant.fresh_ms)];
    return [
      ["Type", variant.content_type],
      ["Size", `${Format.bytes(variant.body_bytes)}, `, pixels],
      ["Stored in", variant.tier === "memory" && variant.also_on_disk ? "memory and on disk" : variant.tier],
      ["Status", String(variant.status)],
      ["Age", Format.duration(variant.age_ms)],
      fresh,
      ["Validated", Format.ago(variant.validated_ms_ago)],
      ["ETag", variant.etag ?? "none"],
      ["Last-Modified", variant.last_modified ?? "none"],
      ["Vary", variant.vary?.length ? variant.vary.join(", ") : "none"],
      ["Accesses", Inspect.#accesses(variant)],
      ["Tags", variant.tags?.length ? variant.tags.join(", ") : "none"],
      ["Owners", ...this.entry.owners.map((id) => this.#owner(id))],
    ];
  }

  // In memory the same estimate as in the list of the hottest; on disk what its record counts.
  static #accesses({ memory_accesses, accesses, last_access_ms_ago }) {
    const parts = [
      memory_accesses === null ? null : `${Format.count(memory_accesses)} in memory`,
      accesses === null ? null : `${Format.count(accesses)} on disk, the last ${Format.ago(last_access_ms_ago)}`,
    ].filter(Boolean);
    return parts.length > 0 ? parts.join("; ") : "too few to be counted";
  }

  #head(variant) {
    const open = matchMedia("(min-width: 761px)").matches;
    const head = ["Field", "Value"].map((name) => Dom.make("th", { scope: "col" }, name));
    return Dom.make("details", { class: "table-view", open },
      Dom.make("summary", {}, `Stored head, ${Format.plural(variant.fields.length, "field")}`),
      Dom.make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Stored head" },
        Dom.make("table", { class: "head" },
          Dom.make("thead", {}, Dom.make("tr", {}, ...head)),
          Dom.make("tbody", {}, ...variant.fields.map(([name, value]) =>
            Dom.make("tr", {}, Dom.make("th", { scope: "row" }, name), Dom.make("td", {}, value)))))));
  }

  async #draw(variant, picture, pixels, turn) {
    if (!variant.content_type?.startsWith("image/")) return;
    if (variant.body_bytes > Inspect.#pictureMax) {
      picture.replaceChildren(Hot.blank(`${Format.bytes(variant.body_bytes)}: too large to show here`));
      return;
    }
    try {
      const query = new URLSearchParams({ url: this.entry.url, variant: variant.variant });
      const blob = await this.api.blob(`/admin/v1/entry/body?${query}`);
      if (turn !== this.turn || !picture.isConnected) return;
      this.blob = URL.createObjectURL(blob);
      const image = Dom.make("img", { alt: `The stored image ${Hot.name(this.entry.url)}` });
      image.addEventListener("load", () => {
        picture.replaceChildren(image);
        pixels.textContent = image.naturalWidth > 0 ? `${image.naturalWidth} × ${image.naturalHeight} px` : "–";
      });
      image.addEventListener("error", () => {
        picture.replaceChildren(Hot.blank("broken"));
        pixels.textContent = "this browser cannot show it";
      });
      image.src = this.blob;
    } catch {
      picture.replaceChildren(Hot.blank("no longer stored"));
    }
  }

  #forgetPicture() {
    if (this.blob) URL.revokeObjectURL(this.blob);
    this.blob = null;
  }

  #shortcut(event) {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select, dialog")) return;
    event.preventDefault();
    this.field.focus();
    this.field.select();
  }
}
