// Keys that work everywhere on the page, and the list of them. Single keys can be switched off: speech and
// tremor type them by accident.

const list = document.getElementById('shortcuts');
const single = document.getElementById('single_keys');

/** Start listening; `acts` are functions by key. */
export function listen(acts) {
  const help = () => list.showModal();
  document.getElementById('help').addEventListener('click', help);
  document.addEventListener('keydown', (event) => {
    const typing = event.target.matches('input[type=text], select, textarea');
    if (event.ctrlKey || event.metaKey || event.altKey || typing || list.open || !single.checked) return;
    const act = event.key === '?' ? help : acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
