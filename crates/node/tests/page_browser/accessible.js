(() => {
  const wrong = [];
  const seen = (element) => element.checkVisibility({ visibilityProperty: true });
  const ids = new Set();
  for (const element of document.querySelectorAll("[id]")) {
    if (ids.has(element.id)) wrong.push(`two elements have the ID ${element.id}`);
    ids.add(element.id);
  }
  for (const control of document.querySelectorAll("button, a, input, select, textarea, summary, progress, dialog, img, [role=img]")) {
    if (!seen(control)) continue;
    const labels = [...(control.labels ?? [])].map((label) => label.textContent).join(" ");
    const by = control.getAttribute("aria-labelledby");
    const name = control.getAttribute("aria-label") || labels || (by && document.getElementById(by)?.textContent) ||
      control.getAttribute("alt") || (["BUTTON", "A", "SUMMARY"].includes(control.tagName) && control.textContent);
    const isDecoration = control.getAttribute("alt") === "";
    if (!isDecoration && !String(name || "").trim()) wrong.push(`no name: ${control.outerHTML.slice(0, 120)}`);
  }
  let level = 0;
  for (const heading of document.querySelectorAll("h1, h2, h3, h4")) {
    if (!seen(heading)) continue;
    const now = Number(heading.tagName[1]);
    if (now > level + 1) wrong.push(`the heading "${heading.textContent}" skips a level`);
    level = now;
  }
  for (const landmark of ["header", "nav[aria-label]", "main", "[aria-live=polite]", "[role=alert]"]) {
    if (!document.querySelector(landmark)) wrong.push(`no ${landmark}`);
  }
  if (document.documentElement.scrollWidth > window.innerWidth) wrong.push(`wider than the window: ${document.documentElement.scrollWidth}`);
  for (const part of document.querySelectorAll("dialog[open], dialog[open] *, section:not([hidden]), .card, .row, .thread")) {
    const cuts = ["hidden", "auto", "scroll"].includes(getComputedStyle(part).overflowX) && part.matches("dialog *, section, .thread") && !part.matches("pre, .open, .why, .pace, input, select");
    if (cuts && part.scrollWidth > part.clientWidth + 1) wrong.push(`wider than its place: ${part.outerHTML.slice(0, 120)}`);
  }
  const channels = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = ([red, green, blue]) => {
    const linear = [red, green, blue].map((value) => value / 255).map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = channels(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  for (const element of document.querySelectorAll("body *")) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!hasText || !seen(element) || element.closest(":disabled, .pending, svg, option, noscript")) continue;
    const [front, back] = [luminance(channels(getComputedStyle(element).color)), luminance(behind(element))];
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    if (ratio < 4.5) wrong.push(`contrast ${ratio.toFixed(2)}: ${element.outerHTML.slice(0, 120)}`);
  }
  return wrong.join("\n");
})()
