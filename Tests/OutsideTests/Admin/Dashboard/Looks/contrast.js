// Returns texts whose contrast with their background is below the minimum of WCAG 2.2 (1.4.3).
(() => {
  const pixel = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const parts = (colour) => {
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = colour;
    pixel.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pixel.getImageData(0, 0, 1, 1).data;
    return { rgb: [r, g, b], alpha: a / 255 };
  };
  const over = (front, back) => front.rgb.map((part, index) =>
    part * front.alpha + back[index] * (1 - front.alpha));
  // Null for a background image or pattern.
  const ground = (element) => {
    if (element === null) return parts(getComputedStyle(document.body).backgroundColor).rgb;
    const style = getComputedStyle(element);
    if (style.backgroundImage !== "none") return null;
    const own = parts(style.backgroundColor);
    if (own.alpha === 1) return own.rgb;
    const back = ground(element.parentElement);
    return back && over(own, back);
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((part) => part / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility({ opacityProperty: true })) continue;
    if (element.closest("script, style, .unseen, .skip, :disabled, .dim, option")) continue;
    const style = getComputedStyle(element);
    if (parseFloat(style.fontSize) === 0) continue;
    const back = ground(element);
    if (back === null) continue;
    const front = over(parts(element.closest("svg") ? style.fill : style.color), back);
    const [one, other] = [light(front), light(back)].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    if (ratio < least) found.push(`${ratio.toFixed(2)}: ${node.data.trim().slice(0, 40)}`);
  }
  return found;
})()
