// Tabs: one of several panels is shown. Arrows, Home and End lead from one tab to the next.

export class Tabs {
  /** `list` has the tabs; `changed` is called with the id of the panel that is shown now. */
  constructor(list, changed) {
    this.tabs = [...list.querySelectorAll("[role=tab]")];
    this.changed = changed;
    for (const tab of this.tabs) tab.onclick = () => this.show(tab.getAttribute("aria-controls"));
    list.addEventListener("keydown", event => this.pressed(event));
  }

  pressed(event) {
    const last = this.tabs.length - 1, at = this.tabs.indexOf(document.activeElement);
    const next = {ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last}[event.key];
    if (at < 0 || next === undefined) return;
    event.preventDefault();
    this.tabs[next].focus();
    this.tabs[next].click();
  }

  /** Shows the panel with this id. */
  show(id) {
    for (const tab of this.tabs) {
      const isShown = tab.getAttribute("aria-controls") === id;
      tab.setAttribute("aria-selected", String(isShown));
      tab.tabIndex = isShown ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = !isShown;
    }
    this.changed(id);
  }
}
