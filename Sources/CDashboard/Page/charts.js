// A chart of what the node remembers, drawn in the pixels it has. Redrawn whole: once a second that costs nothing.
class TimeChart {
  static #margin = { top: 8, right: 2, bottom: 22 };
  // Longer than this between two points, the node did not count.
  static #gap = 15_000;

  // series: [{ key, name, kind: "area" | "line", look }]; areas are stacked in the order given.
  // scale: "share" (0 to 1), "amount" or "bytes" (from 0, growing with the figures), or "latency" (µs, logarithmic).
  constructor(container, { title, series, scale, format, height = 150 }) {
    Object.assign(this, { container, title, series, scale, format, height, points: [], now: 0, span: 300_000 });
    this.width = 0;
    this.svg = Dom.draw("svg", { role: "img", "aria-label": `${title}: no figures yet` });
    this.readout = Dom.make("p", { class: "readout", "aria-hidden": "true", hidden: true });
    container.append(Dom.make("ul", { class: "legend" }, ...series.map(({ name, look }) =>
      Dom.make("li", {}, Dom.make("span", { class: `swatch ${look}` }), name))), this.svg, this.readout);
    new ResizeObserver(([entry]) => {
      const width = Math.floor(entry.contentRect.width);
      if (width === this.width) return;
      this.width = width;
      this.draw();
    }).observe(container);
    this.svg.addEventListener("pointermove", (event) => this.#point(event));
    this.svg.addEventListener("pointerleave", () => {
      this.pointer = null;
      this.draw();
    });
  }

  show({ points, now, span }, label) {
    Object.assign(this, { points, now, span });
    Dom.attribute(this.svg, "aria-label", label);
    this.draw();
  }

  draw() {
    const { width, height } = this;
    if (width < 80) return;
    const { top, right, bottom } = TimeChart.#margin;
    this.plot = { x1: width - right, y0: height - bottom, y1: top };
    for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) {
      Dom.attribute(this.svg, name, String(value));
    }
    const { y, ticks } = this.#scale();
    // Digits of 11 px are 7 px wide at most.
    this.plot.x0 = 8 + 7 * Math.max(...ticks.map((tick) => this.#label(tick).length));
    const runs = this.#runs();
    this.svg.replaceChildren(...this.#frame(y, ticks), ...this.#shapes(runs, y), ...this.#cursor());
  }

  #x(at) {
    const { x0, x1 } = this.plot;
    return x1 - ((this.now - at) / this.span) * (x1 - x0);
  }

  #scale() {
    const { y0, y1 } = this.plot;
    const place = (share) => y0 - Math.max(0, Math.min(1, share)) * (y0 - y1);
    if (this.scale === "share") return { y: place, ticks: [0, 0.5, 1] };
    if (this.scale === "latency") {
      const values = this.series.flatMap(({ key }) => this.points.map((point) => point[key])).filter((us) => us > 0);
      const finite = values.map((value) => Math.min(value, 1e7));
      const low = Math.floor(Math.log10(Math.min(1000, ...finite)));
      const high = Math.max(low + 2, Math.ceil(Math.log10(Math.max(1000, ...finite))));
      const ticks = Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index));
      return {
        y: (us) => place((Math.log10(Math.min(us, 1e7)) - low) / (high - low)),
        ticks: high - low > 3 ? ticks.filter((_, index) => index % 2 === 0) : ticks,
      };
    }
    const sums = this.points.map((point) => this.series.reduce((sum, { key }) => sum + point[key], 0));
    const top = this.#roundUp(Math.max(0, ...sums));
    return { y: (amount) => place(amount / top), ticks: [0, top / 2, top] };
  }

  // The least of 1, 2, 4, 6, 8, 10 … above the figures, in powers of 1024 for bytes, so that the axis has round labels.
  #roundUp(most) {
    const binary = this.scale === "bytes";
    if (most <= 0) return binary ? 2048 : 2;
    const base = binary ? 1024 ** Math.floor(Math.log(most) / Math.log(1024)) : 1;
    const power = 10 ** Math.floor(Math.log10(most / base));
    return base * power * [1, 2, 4, 6, 8, 10, 20].find((step) => step * power * base >= most);
  }

  // Ticks are round: what the figures need after the point, the axis does not.
  #label(tick) {
    return this.format(tick).replace(/\.0(?=\D|$)/, "");
  }

  // Points without a gap between them, each a path of its own.
  #runs() {
    const runs = [];
    let before = -Infinity;
    for (const point of this.points) {
      if (point.at < this.now - this.span) continue;
      if (point.from - before > TimeChart.#gap) runs.push([]);
      runs.at(-1).push(point);
      before = point.at;
    }
    return runs;
  }

  #frame(y, ticks) {
    const { x0, x1, y0 } = this.plot;
    const lines = ticks.flatMap((tick) => {
      // On half a pixel a line of one pixel is sharp.
      const height = Math.round(y(tick)) + 0.5;
      return [
        Dom.draw("line", { class: tick === ticks[0] ? "axis" : "rule", x1: x0, x2: x1, y1: height, y2: height }),
        Dom.draw("text", { class: "tick", x: x0 - 8, y: height + 4, "text-anchor": "end" }, this.#label(tick)),
      ];
    });
    const whole = this.span / 60_000;
    const parts = whole === 60 ? 4 : whole === 15 ? 3 : 5;
    const apart = (x1 - x0) / parts;
    const times = Array.from({ length: parts + 1 }, (_, index) => Dom.draw("text", {
      class: "tick",
      x: x0 + apart * index,
      y: y0 + 17,
      "text-anchor": index === 0 ? "start" : index === parts ? "end" : "middle",
    }, index === parts ? "now" : `${whole - (whole * index) / parts}${index === 0 ? " min ago" : ""}`));
    // The first is long.
    if (apart < 76) times.splice(1, 1);
    return [...lines, ...times];
  }

  #shapes(runs, y) {
    const areas = this.series.filter(({ kind }) => kind === "area");
    const shapes = [];
    for (const run of runs) {
      const base = run.map(() => 0);
      for (const { key, look } of areas) {
        const floor = run.map((point, index) => [this.#x(point.at), y(base[index])]);
        const values = run.map((point) => point[key]);
        if (this.scale === "share") {
          shapes.push(...this.#line(run, key, y, look, true));
          continue;
        }
        values.forEach((value, index) => { base[index] += value; });
        const roof = run.map((point, index) => [this.#x(point.at), y(base[index])]);
        const [there, back] = [TimeChart.#path(roof), TimeChart.#path(floor.reverse()).slice(1)];
        shapes.push(
          Dom.draw("path", { class: `area ${look}`, d: `${there}L${back}Z` }),
          Dom.draw("path", { class: `stroke ${look}`, d: there }),
        );
      }
      for (const { key, look, kind } of this.series) {
        if (kind === "line") shapes.push(...this.#line(run, key, y, look, false));
      }
    }
    return shapes;
  }

  // A line breaks where there is no figure: no answer in that time is not an answer of zero.
  #line(run, key, y, look, filled) {
    const pieces = [[]];
    for (const point of run) {
      if (point[key] === null) pieces.push([]);
      else pieces.at(-1).push([this.#x(point.at), y(point[key])]);
    }
    return pieces.filter((piece) => piece.length > 0).flatMap((piece) => {
      const path = TimeChart.#path(piece);
      const under = `V${this.plot.y0}H${piece[0][0].toFixed(1)}Z`;
      return [
        filled ? Dom.draw("path", { class: `area ${look}`, d: path + under }) : null,
        Dom.draw("path", { class: `stroke ${look}`, d: piece.length > 1 ? path : `${path}h1` }),
      ].filter(Boolean);
    });
  }

  static #path(places) {
    return `M${places.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;
  }

  // A convenience of the pointer only; the table below the charts has the same figures for everybody.
  #point(event) {
    this.pointer = event.clientX - this.svg.getBoundingClientRect().left;
    this.draw();
  }

  #cursor() {
    this.readout.hidden = this.pointer === null || this.pointer === undefined || this.points.length === 0;
    if (this.readout.hidden) return [];
    const distance = (point) => Math.abs(this.#x(point.at) - this.pointer);
    const nearest = this.points.reduce((best, point) => (distance(point) < distance(best) ? point : best));
    const figures = this.series.map(({ key, name }) =>
      `${this.series.length > 1 ? `${name} ` : ""}${nearest[key] === null ? "–" : this.format(nearest[key])}`);
    this.readout.textContent = [Format.ago(this.now - nearest.at), ...figures].join(" · ");
    const x = this.#x(nearest.at);
    return [Dom.draw("line", { class: "cursor", x1: x, x2: x, y1: this.plot.y1, y2: this.plot.y0 })];
  }
}
