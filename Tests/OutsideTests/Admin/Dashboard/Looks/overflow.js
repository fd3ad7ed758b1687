// Returns elements that overflow horizontally, or are cut off by their own edge without an ellipsis.
(() => {
  const wide = document.documentElement.clientWidth;
  const found = [];
  const { scrollWidth } = document.documentElement;
  if (scrollWidth > wide) found.push(`the page is ${scrollWidth} wide, the window ${wide}`);
  const name = (e) => `${e.tagName} #${e.id} .${e.getAttribute("class")} ${e.textContent.trim().slice(0, 40)}`;
  for (const element of document.body.querySelectorAll("*")) {
    const box = element.getBoundingClientRect();
    if (!element.checkVisibility() || box.width < 2 || element.closest(".unseen, .skip, svg")) continue;
    const style = getComputedStyle(element);
    const scrolls = element.parentElement.closest(".scroll");
    if (!scrolls && (box.right > wide + 0.5 || box.left < -0.5)) found.push(`beside: ${name(element)}`);
    // Typed text scrolls in its field.
    if (element.matches("input, textarea")) continue;
    const cuts = ["hidden", "clip"].includes(style.overflowX) && style.textOverflow !== "ellipsis";
    if (cuts && element.scrollWidth > element.clientWidth + 1) found.push(`cut off: ${name(element)}`);
  }
  for (const text of document.body.querySelectorAll("svg text")) {
    const [box, frame] = [text.getBoundingClientRect(), text.ownerSVGElement.getBoundingClientRect()];
    if (box.width === 0 || !text.checkVisibility()) continue;
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1
      || box.bottom > frame.bottom + 1) found.push(`outside of its drawing: ${text.textContent}`);
  }
  return found;
})()
