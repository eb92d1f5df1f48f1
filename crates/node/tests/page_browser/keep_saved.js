// Keeps the texts that the page saves as files, and counts what it prints.
window.saved = [];
window.printed = 0;
window.print = () => { window.printed += 1; };
URL.createObjectURL = (blob) => {
  blob.text().then((text) => window.saved.push(text));
  return "#";
};
URL.revokeObjectURL = () => {};
HTMLAnchorElement.prototype.click = () => {};
