// Returns the number of the focused control, or -1 for any other element, and the faults of its focus ring.
// Null if nothing has the focus.
(() => {
  const element = document.activeElement;
  if (element === document.body || element === null) return null;
  // An input that lies invisibly over its label shows its focus on the label.
  const shown = element.matches(".switch input") ? element.nextElementSibling : element;
  const style = getComputedStyle(shown);
  const box = shown.getBoundingClientRect();
  const wrong = [];
  if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 1) wrong.push("no outline");
  const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  if (!inside) wrong.push("out of sight");
  const [x, y] = [(box.left + box.right) / 2, (Math.max(0, box.top) + Math.min(innerHeight, box.bottom)) / 2];
  const top = document.elementFromPoint(x, y);
  if (inside && top && !shown.contains(top) && !top.contains(shown) && top !== element) {
    wrong.push(`under ${top.tagName} ${top.className}`);
  }
  const said = `${element.tagName} #${element.id} ${element.textContent.trim().slice(0, 40)}`;
  return {
    number: Number(element.dataset.number ?? -1), wrong: wrong.map((what) => `${said}: ${what}`),
  };
})()
