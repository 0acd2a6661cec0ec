// Elements of the pages, and the clipboard.

/** An element with these properties and these children; `aria-…`, `role` and `data-…` are set as attributes. */
export function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [property, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (/^(aria-|data-|role$|for$)/.test(property)) element.setAttribute(property, value);
    else element[property] = value;
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined));
  return element;
}

/** Puts a text on the clipboard, also where the page did not come over a secure connection; whether it worked. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = make("textarea", {value: text, className: "unseen"});
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
