// Who is asking: the token, for this tab only, and what its role allows.
class Session extends EventTarget {
  static #ranks = ["read", "purge", "admin"];
  static #key = "nuthatch-token";

  token = null;
  role = null;
  // The reader closed the dialog: nothing asks again until they open it themselves.
  declined = false;
  #asking = null;
  #retryAt = 0;

  constructor() {
    super();
    try {
      this.token = sessionStorage.getItem(Session.#key);
    } catch {
      // Storage may be unavailable; then the token lives as long as the page.
    }
    this.dialog = Dom.find("token-dialog");
    this.field = Dom.find("token-field");
    this.problem = Dom.find("token-problem");
    Dom.find("token-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    Dom.find("token-cancel").addEventListener("click", () => this.dialog.close());
    Dom.find("token-show").addEventListener("change", (event) => {
      this.field.type = event.target.checked ? "text" : "password";
    });
    Dom.find("forget-token").addEventListener("click", () => this.forget());
    this.dialog.addEventListener("close", () => this.#closed());
  }

  allows(role) {
    return Session.#ranks.indexOf(this.role) >= Session.#ranks.indexOf(role);
  }

  // Why a control is off, or null if it is on. While the role is not known yet it is off, and nothing is said.
  reason(role, doing) {
    if (this.role === null || this.allows(role)) return null;
    return `${doing} requires the role “${role}”. Your token has the role “${this.role}”.`;
  }

  setRole(role) {
    Dom.find("forget-token").hidden = this.token === null;
    if (role === this.role) return;
    this.role = role;
    this.dispatchEvent(new Event("change"));
  }

  // Resolves to whether there is now another token than the one that was refused.
  ask(refused) {
    if (this.token !== refused && this.token !== null) return Promise.resolve(true);
    if (this.declined) return Promise.resolve(false);
    this.#asking ??= new Promise((resolve) => {
      this.resolve = resolve;
      this.problem.textContent = refused === null ? "" : "The token of this page is no longer accepted.";
      this.field.value = "";
      this.dialog.showModal();
      this.field.focus();
    });
    return this.#asking;
  }

  // From the notice that stands where the figures would: the reader changed their mind.
  reopen() {
    this.declined = false;
    return this.ask(this.token);
  }

  // A fresh page: nothing that the token let in stays on the screen or in the stream.
  forget() {
    this.#keep(null);
    location.reload();
  }

  async #submit() {
    const token = this.field.value.trim();
    if (Date.now() < this.#retryAt) return;
    if (token === "") return this.#refuse("Enter the token, or choose “Not now”.");
    if (!/^[\x21-\x7e]+$/.test(token)) {
      return this.#refuse("A token has no spaces or accents. Check that you copied one line, and only that.");
    }
    const send = Dom.find("token-send");
    send.disabled = true;
    try {
      const headers = { Authorization: `Bearer ${token}` };
      const answer = await fetch("/admin/v1/status", { headers, cache: "no-store" });
      if (answer.ok) {
        this.#keep(token);
        this.dialog.close();
      } else if (answer.status === 401) {
        this.#refuse("This node did not accept the token. Check that it is complete, and that it is from this node’s token "
          + "file. The tokens may have been changed.");
      } else if (answer.status === 429) {
        this.#wait(Api.retryAfter(answer));
      } else {
        this.#refuse(`This node could not check the token: it responded with ${answer.status}. Try again in a moment.`);
      }
    } catch {
      this.#refuse("This node cannot be reached at the moment. The token was not checked.");
    } finally {
      send.disabled = Date.now() < this.#retryAt;
    }
  }

  #refuse(text) {
    this.problem.textContent = text;
    Dom.attribute(this.field, "aria-invalid", "true");
    this.field.focus();
    this.field.select();
  }

  // Says it once aloud; the seconds that follow change on the button, which is not a live region.
  #wait(seconds) {
    this.#retryAt = Date.now() + seconds * 1000;
    this.#refuse(`Too many wrong tokens. This node accepts another attempt in ${Format.duration(seconds * 1000)}.`);
    const send = Dom.find("token-send");
    const tick = () => {
      const left = Math.ceil((this.#retryAt - Date.now()) / 1000);
      send.disabled = left > 0;
      send.textContent = left > 0 ? `Wait ${left}${Format.space}s` : "Use this token";
      if (left > 0) setTimeout(tick, 250);
      else this.problem.textContent = "You may try again now.";
    };
    tick();
  }

  #closed() {
    const resolve = this.resolve;
    const accepted = this.accepted === true;
    this.accepted = false;
    this.#asking = null;
    this.field.value = "";
    this.field.type = "password";
    Dom.find("token-show").checked = false;
    this.field.removeAttribute("aria-invalid");
    this.declined = !accepted;
    if (accepted) this.dispatchEvent(new Event("accepted"));
    else this.dispatchEvent(new Event("declined"));
    resolve?.(accepted);
  }

  #keep(token) {
    this.token = token;
    this.accepted = token !== null;
    Dom.find("forget-token").hidden = token === null;
    try {
      if (token === null) sessionStorage.removeItem(Session.#key);
      else sessionStorage.setItem(Session.#key, token);
    } catch {
      // As above: without storage the token lives as long as the page.
    }
  }
}
