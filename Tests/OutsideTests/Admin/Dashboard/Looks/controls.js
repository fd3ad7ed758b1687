// Numbers every control that the Tab key must reach (of radio buttons the chosen one), and returns their count.
(() => {
  const kinds = "a[href], button, input, select, textarea, summary, [tabindex='0']";
  const controls = [...document.querySelectorAll(kinds)].filter((element) =>
    element.checkVisibility() && !element.matches(":disabled")
    && (element.type !== "radio" || element.checked));
  controls.forEach((element, index) => { element.dataset.number = index; });
  return controls.length;
})()
