// The row of tabs. Python writes what stands in a tab when it is opened; until then its panel is busy.

const tabs = [...document.querySelectorAll('[role="tab"]')];
const name = (tab) => tab.id.slice('tab-'.length);
let chosen = name(tabs[0]);
let changed;

/** Start listening; `changed('tab', name)` hears of every tab that the user opens. */
export function listen(hears) {
  changed = hears;
  tabs.forEach((tab, at) => {
    tab.addEventListener('click', () => choose(tab));
    tab.addEventListener('keydown', (event) => {
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const next = tabs.at(to % tabs.length);
      next.focus();
      choose(next);
    });
  });
  for (const button of document.querySelectorAll('[data-tab]')) {
    button.addEventListener('click', () => open(button.dataset.tab));
  }
}

/** The names of the tabs in their order. */
export const names = () => tabs.map(name);

/** Open a tab from elsewhere on the page. */
export function open(wanted) {
  const tab = tabs.find((one) => name(one) === wanted);
  choose(tab);
  tab.focus();
  tab.scrollIntoView({ block: 'nearest' });
}

/** A tab that Python is going to write. */
export function expect(wanted) {
  if (wanted !== chosen && names().includes(wanted)) select(wanted, true);
}

/** Show the tab that Python has written. */
export function show(written) {
  select(written, false);
}

function choose(tab) {
  if (name(tab) === chosen) return;
  select(name(tab), true);
  changed('tab', chosen);
}

function select(wanted, busy) {
  chosen = wanted;
  for (const tab of tabs) {
    const selected = name(tab) === chosen;
    const panel = document.getElementById(tab.getAttribute('aria-controls'));
    tab.setAttribute('aria-selected', selected);
    tab.tabIndex = selected ? 0 : -1;
    panel.hidden = !selected;
    panel.setAttribute('aria-busy', selected && busy);
  }
}
