// Light, dark, or what the system prefers; remembered by this browser where it can be.
class Theme {
  static #key = "nuthatch-theme";

  constructor() {
    const theme = Theme.#remembered();
    document.documentElement.dataset.theme = theme;
    for (const input of document.querySelectorAll("input[name=theme]")) {
      input.checked = input.value === theme;
      input.addEventListener("change", () => this.choose(input.value));
    }
  }

  choose(theme) {
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem(Theme.#key, theme);
    } catch {
      // Storage may be unavailable; the choice then lasts as long as the page.
    }
  }

  static #remembered() {
    try {
      const theme = localStorage.getItem(Theme.#key);
      return ["light", "dark"].includes(theme) ? theme : "auto";
    } catch {
      return "auto";
    }
  }
}
