// The address bar: it follows the scenario, and the way back leads to the scenarios before.
// A slider only rewrites the present entry of the history; what is typed or chosen makes a new one. In a frame
// nothing does: the way back belongs to the page around it.

const PATIENCE = 250; // ms: browsers refuse an address that changes all the time
const framed = window !== window.top;

/** Whether this visit is one without a service worker: `sw=off` is no part of the scenario, and stays in the bar. */
export const workerless = new URLSearchParams(location.search).get('sw') === 'off';
const said = () => location.search.slice(1).replace(/(^|&)sw=off(?=&|$)/, '').replace(/^&/, '');

let shown = said(); // what the address bar is to say
let entry; // what the present entry of the history is to keep; undefined while it moves with the address
let typing = false; // the entry stays as it is until the user is done with the box
let settled = false; // whether a choice was made since the last entry
let timer;

/** Start listening; `opened(query)` hears of every address that the user goes back or forward to. */
export function listen(opened) {
  document.addEventListener('change', ({ target }) => target.type !== 'range' && settle());
  document.addEventListener('input', ({ target }) => {
    if (settled) write(); // the choice before this one
    settled = false;
    typing = target.type === 'text';
    if (target.type === 'range') entry = undefined;
  });
  addEventListener('popstate', () => {
    const query = said();
    if (query === shown) return; // only the part after # is another
    clearTimeout(timer);
    shown = query;
    entry = undefined; // Python may write it otherwise
    opened(query);
  });
  addEventListener('afterprint', () => document.getElementById('printed').replaceChildren());
  addEventListener('beforeprint', () => {
    write();
    const now = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: 'long', timeStyle: 'short' });
    document.getElementById('printed').textContent = `${location.href} · ${now.format(new Date())}`;
  });
}

/** The scenario has this address now. */
export function follow(query) {
  shown = query;
  schedule();
}

/** A choice is made: the address that comes of it is worth a way back. */
export function settle() {
  settled = true;
  typing = false;
  schedule();
}

/** The link to the present scenario. */
export function link() {
  write();
  return location.href;
}

function schedule() {
  clearTimeout(timer);
  timer = setTimeout(write, PATIENCE);
}

function write() {
  clearTimeout(timer);
  const at = (query) => `?${[query, workerless && 'sw=off'].filter(Boolean).join('&')}${location.hash}`;
  if (settled && !framed && entry !== undefined && entry !== shown) {
    history.replaceState(null, '', at(entry)); // typing had moved it
    history.pushState(null, '', at(shown));
    entry = shown;
    settled = false;
  } else if (said() !== shown) {
    history.replaceState(null, '', at(shown));
  }
  if (!typing) entry = shown;
}
