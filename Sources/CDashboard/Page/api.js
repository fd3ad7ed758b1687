// A problem document (RFC 9457), or a refusal without one, as an error a reader can be shown.
class Problem extends Error {
  constructor(status, { title, detail, type, ...rest } = {}) {
    super(detail || title || `The node answered ${status}.`);
    this.status = status;
    this.type = type ?? "about:blank";
    this.rest = rest;
  }
}

// Every request of the page but the one that checks a token.
class Api {
  constructor(session) {
    this.session = session;
  }

  static retryAfter(answer) {
    const seconds = Number(answer.headers.get("Retry-After"));
    return Number.isFinite(seconds) && seconds > 0 ? seconds : 5;
  }

  async json(path, signal) {
    return (await this.open(path, { signal })).json();
  }

  async blob(path, signal) {
    return (await this.open(path, { signal })).blob();
  }

  async post(path, content) {
    const body = content === undefined ? {} : { body: JSON.stringify(content) };
    const headers = content === undefined ? {} : { "Content-Type": "application/json" };
    return (await this.open(path, { method: "POST", headers, ...body })).json();
  }

  // Resolves to an answer that is a success, once there is one: a 401 asks the reader and tries again.
  async open(path, options = {}) {
    for (;;) {
      const token = this.session.token;
      const headers = { ...options.headers };
      if (token !== null) headers.Authorization = `Bearer ${token}`;
      const answer = await fetch(path, { ...options, headers, cache: "no-store" });
      if (answer.ok) return answer;
      if (answer.status === 401 && (await this.session.ask(token))) continue;
      throw await this.#problem(answer);
    }
  }

  async #problem(answer) {
    let document = {};
    try {
      document = await answer.json();
    } catch {
      // A refusal without a document is described by its status alone.
    }
    const problem = new Problem(answer.status, document);
    if (answer.status === 401) problem.message = "This node requires a token.";
    if (answer.status === 403 && this.session.role !== null) {
      problem.message = `Your token’s role, “${this.session.role}”, does not allow this.`;
    }
    if (answer.status === 429) {
      problem.retryAfterMs = Api.retryAfter(answer) * 1000;
      problem.message = `This node asks to wait ${Format.duration(problem.retryAfterMs)} before the next try.`;
    }
    return problem;
  }
}
