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

/** Buttons that copy: what each is called, and the timer that gives it its name back. */
const copying = new WeakMap();

/** Puts a text on the clipboard, and makes the button that was pressed say for a moment whether that worked. */
export async function copyBy(button, text) {
  const known = copying.get(button) ?? {name: button.textContent, timer: 0};
  copying.set(button, known);
  const said = (await copy(text)) ? "Copied" : "Not copied";
  clearTimeout(known.timer);
  button.textContent = said;
  known.timer = setTimeout(() => { button.textContent = known.name; }, 1500);
}

/** Puts a text on the clipboard, also where the page did not come over a secure connection; whether it worked. */
async function copy(text) {
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
