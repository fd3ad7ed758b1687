// Drain and undrain, after a dialog that says what happens.
class Drain {
  static #words = {
    drain: {
      button: "Drain…", title: "Drain this node?", send: "Drain",
      text: "The node leaves the ring, hands off its entries to the other nodes, and responds to /readyz with 503, "
        + "so that load balancers stop sending requests. It still serves requests until it is stopped or undrained.",
    },
    undrain: {
      button: "Undrain…", title: "Undrain this node?", send: "Undrain",
      text: "The node returns to the ring and responds to /readyz with 200, so that load balancers send requests again.",
    },
  };

  constructor(api, session) {
    this.api = api;
    this.session = session;
    this.verb = "drain";
    this.button = Dom.find("drain");
    this.dialog = Dom.find("drain-dialog");
    this.problem = Dom.find("drain-problem");
    this.button.addEventListener("click", () => this.#open());
    Dom.find("drain-cancel").addEventListener("click", () => this.dialog.close());
    Dom.find("drain-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    session.addEventListener("change", () => this.#gate());
  }

  show(readiness) {
    this.verb = readiness === "draining" ? "undrain" : "drain";
    Dom.text(this.button, Drain.#words[this.verb].button);
  }

  #gate() {
    const reason = this.session.reason("admin", "Draining");
    this.button.disabled = !this.session.allows("admin");
    Dom.find("drain-reason").hidden = reason === null;
    Dom.put("drain-reason", reason ?? "");
  }

  // The dialog keeps the verb it was opened with, whatever the node does meanwhile.
  #open() {
    const { title, text, send } = Drain.#words[this.verb];
    this.asked = this.verb;
    Dom.put("drain-title", title);
    Dom.put("drain-text", text);
    Dom.put("drain-send", send);
    this.problem.textContent = "";
    Dom.find("drain-send").disabled = false;
    this.dialog.showModal();
    Dom.find("drain-cancel").focus();
  }

  async #send() {
    const send = Dom.find("drain-send");
    send.disabled = true;
    try {
      const { status } = await this.api.post(`/admin/v1/${this.asked}`);
      this.show(status);
      this.dialog.close();
    } catch (problem) {
      this.problem.textContent = problem.status ? problem.message : "This node cannot be reached; nothing was changed.";
      send.disabled = false;
      send.focus();
    }
  }
}
