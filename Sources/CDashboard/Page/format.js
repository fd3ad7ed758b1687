// Figures as people read them. A no-break space keeps each figure and its unit on one line.
const Format = {
  space: "\u00a0",

  count(number) {
    return Math.round(number).toLocaleString("en");
  },

  // Large counts of the past, where the last digits say nothing: 1.24 million.
  roughly(number) {
    if (number < 1e6) return Format.count(number);
    const [unit, name] = number < 1e9 ? [1e6, "million"] : [1e9, "thousand million"];
    return `${(number / unit).toFixed(2)}${Format.space}${name}`;
  },

  rate(perSecond) {
    if (perSecond === 0) return "0";
    if (perSecond < 0.1) return "< 0.1";
    return perSecond < 10 ? perSecond.toFixed(1) : Format.count(perSecond);
  },

  // Never rounds up to a whole: 100 % means all.
  percent(share) {
    if (!Number.isFinite(share)) return "–";
    if (share > 0 && share < 0.01) return `${share < 0.0001 ? "< 0.01" : (share * 100).toFixed(2)}${Format.space}%`;
    const tenths = share < 0 ? Math.round(share * 1000) : Math.floor(share * 1000 + 1e-6);
    const text = Math.abs(tenths) === 1000 || tenths === 0 ? String(tenths / 10) : (tenths / 10).toFixed(1);
    return `${text.replace("-", "−")}${Format.space}%`;
  },

  bytes(count) {
    const sign = count < 0 ? "−" : "";
    let size = Math.abs(count);
    let unit = 0;
    while (size >= 1000 && unit < 5) {
      size /= 1024;
      unit += 1;
    }
    const digits = unit === 0 || size >= 100 ? 0 : 1;
    return `${sign}${size.toFixed(digits)}${Format.space}${["B", "KiB", "MiB", "GiB", "TiB", "PiB"][unit]}`;
  },

  // The two largest units, the second only where it still says something.
  duration(ms) {
    if (ms < 1000) return `${Math.max(0, Math.round(ms))}${Format.space}ms`;
    if (ms < 10_000) return `${(Math.floor(ms / 100) / 10).toFixed(1).replace(".0", "")}${Format.space}s`;
    const seconds = Math.floor(ms / 1000);
    const parts = [
      [Math.floor(seconds / 86_400), "d"],
      [Math.floor(seconds / 3600) % 24, "h"],
      [Math.floor(seconds / 60) % 60, "min"],
      [seconds % 60, "s"],
    ];
    const first = parts.findIndex(([amount]) => amount > 0);
    return parts
      .slice(first, first + 2)
      .filter(([amount]) => amount > 0)
      .map(([amount, unit]) => `${amount}${Format.space}${unit}`)
      .join(Format.space);
  },

  // For what grows by the second: no tenths.
  seconds(ms) {
    return Format.duration(Math.floor(ms / 1000) * 1000);
  },

  // One unit is enough for how long ago something was, and whole seconds while a reader watches it grow.
  ago(ms) {
    const unit = [86_400_000, 3_600_000, 60_000].find((size) => ms >= size) ?? 1000;
    return ms < 1000 ? "just now" : `${Format.duration(Math.floor(ms / unit) * unit)} ago`;
  },

  byteRate(perSecond) {
    return `${Format.bytes(perSecond)}/s`;
  },

  latency(us) {
    if (us === null) return "–";
    if (us === Infinity) return `> 10${Format.space}s`;
    const [value, unit] = us < 1000 ? [us, "µs"] : us < 1e6 ? [us / 1000, "ms"] : [us / 1e6, "s"];
    return `${value < 10 && unit !== "µs" ? value.toFixed(1) : Math.round(value)}${Format.space}${unit}`;
  },

  // A name of the API in words: origin-down is "origin down".
  words(name) {
    return name.replaceAll(/[-_]/g, " ");
  },

  plural(number, one, many = `${one}s`) {
    return `${Format.count(number)} ${number === 1 ? one : many}`;
  },

  list(words) {
    return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
  },
};
