// The page: reads the address, starts the worker, shows what it answers, writes the address back.
import * as address from './address.mjs';
import * as bokeh from './bokeh.mjs';
import * as charts from './charts.mjs';
import * as compare from './compare.mjs';
import { copy } from './copy.mjs';
import * as form from './form.mjs';
import * as how from './how.mjs';
import * as own from './own.mjs';
import { Python } from './python.mjs';
import * as shortcuts from './shortcuts.mjs';
import * as strip from './strip.mjs';
import * as tabs from './tabs.mjs';

const root = document.documentElement;
const site = JSON.parse(document.getElementById('site').textContent);
const { answer, charts: built, system, dark } = window.kvStart; // first-paint.js

let query = location.search.slice(1);
let status = { key: 'status.loading', values: {} };
let rest = 'status.live'; // what the status says when nothing happens

// ---- words and pieces -------------------------------------------------------------------------------------------

const word = (key, values = {}) =>
  site.texts[root.lang][key].replaceAll(/\{(\w+)\}/g, (_, name) => values[name]);

/** What stands there already is not written: the page would be laid out anew. */
function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function reword() {
  for (const element of document.querySelectorAll('[data-text]')) write(element, word(element.dataset.text));
  for (const element of document.querySelectorAll('[data-name]')) element.setAttribute('aria-label', word(element.dataset.name));
  form.reword();
  own.reword();
  say(status.key, status.values);
}

function say(key, values = {}) {
  status = { key, values };
  write(document.getElementById('status'), word(key, values));
}

function fill(pieces) {
  for (const [id, html] of Object.entries(pieces)) {
    const element = document.getElementById(id);
    // What Python sends is text that its templates escaped; equal pieces keep selection and scrolling.
    if (element.shown !== html) element.innerHTML = element.shown = html;
  }
}

function describe(summary) {
  document.getElementById('curves').setAttribute('aria-label', summary.curves);
  document.getElementById('bars').setAttribute('aria-label', summary.bars);
  soon('live', 800, () => (document.getElementById('live').textContent = summary.live));
}

const timers = {};
function soon(name, milliseconds, act) {
  clearTimeout(timers[name]);
  timers[name] = setTimeout(act, milliseconds);
}

// ---- the page before Python ---------------------------------------------------------------------------------------

/** The answer to no address is in the page; the shape of it serves until there is a better one. */
function open() {
  const first = { ...site.pages[root.lang], theme: root.dataset.theme };
  // index.html has the pieces in one language, and nobody has touched them.
  if (root.lang === site.language) for (const [id, html] of Object.entries(first.pieces)) document.getElementById(id).shown = html;
  if (query) present(first);
  else show(first);
  tabs.expect(new URLSearchParams(query).get('tab'));
}

/** The answer to the name of a model was written by the build; Python's comes later, and is the same. */
async function preset() {
  if (!answer?.response) return;
  missing = answer.url;
  const response = await answer.response.catch(() => undefined);
  answer.response = missing = undefined; // it can be read once, and whoever tries again waits for Python
  if (!response?.ok) return;
  const { pieces, form, summary } = await response.json();
  if (root.dataset.kvAnswer !== 'waiting') return;
  const first = site.pages[root.lang];
  present({ pieces: { ...first.pieces, ...pieces }, form: { ...first.form, ...form }, summary });
  root.dataset.kvAnswer = 'still';
  requestAnimationFrame(() => performance.mark('kv-answer'));
}

/** The charts as the build has them; Python brings them to what the address asks for. */
async function paint() {
  await preset();
  if (!built) return;
  const asked = built.response ?? fetch(built.url);
  missing = built.url;
  built.response = undefined; // whoever tries again asks again
  const response = await asked;
  if (!response.ok) throw new Error(`${built.url}: HTTP ${response.status}`);
  const document = await response.json();
  await library();
  if (superseded) return;
  await charts.paint(document);
  if (!root.dataset.kvAnswer) painted();
}

async function library() {
  missing = 'bokeh.min.js';
  await bokeh.arrived();
  missing = undefined;
}

function painted() {
  charts.uncover();
  if (root.dataset.kvState === 'loading') root.dataset.kvState = 'painted';
  performance.mark('kv-painted');
}

function present({ pieces, form: controls, summary }) {
  fill(pieces);
  strip.refresh();
  form.show(controls);
  describe(summary);
}

function show(page) {
  root.dataset.theme = page.theme;
  if (root.lang !== page.language) {
    root.lang = page.language;
    reword();
  }
  if (root.dataset.kvAnswer === 'waiting') performance.mark('kv-answer');
  delete root.dataset.kvAnswer;
  present(page);
  own.show(page.own);
  compare.refresh();
  if (!python.ahead('tab')) tabs.show(page.tab);
  document.title = `${page.title} · ${word('shell.title')}`;
  query = page.address;
  address.follow(query);
}

// ---- changes --------------------------------------------------------------------------------------------------------

function change(field, text) {
  // The page itself can follow these two at once.
  if (field === 'theme') root.dataset.theme = text === 'auto' ? system().theme : text;
  if (field === 'language') {
    root.lang = text === 'auto' ? system().language : text;
    reword();
  }
  python.change(field, text);
}

/** What is not typed or dragged is a choice, which is worth a way back. */
function choose(field, text) {
  change(field, text);
  address.settle();
}

async function copyLink() {
  say((await copy(address.link())) ? 'shell.copied' : 'shell.copy_failed');
  soon('copied', 3000, () => root.dataset.kvState === 'live' && say(rest));
}

window.kvCalculator = {
  /** The estimate's JSON, once Python has answered every change made so far. */
  result: () => python.result(),
};

// ---- the service worker ---------------------------------------------------------------------------------------------

const OFFLINE = 1000; // ms after the start, which the user is at work by then
const idle = window.requestIdleCallback ?? setTimeout;
let kept; // once a visit

// A page in a frame belongs to another site's visit, and browsers without a secure address have no service workers.
function keep() {
  if (window === window.top && navigator.serviceWorker) {
    kept ??= import('./offline.mjs').then((offline) => offline.keep(root.dataset.kvBuild, newer)).catch(console.info);
  }
}

function newer() {
  rest = 'status.newer';
  document.getElementById('reload').hidden = false;
  if (root.dataset.kvState === 'live') say(rest);
}

// ---- Python ---------------------------------------------------------------------------------------------------------

const hear = {
  progress({ step, loaded, total }) {
    const bar = document.getElementById('progress');
    if (loaded === undefined) bar.removeAttribute('value');
    else bar.value = loaded / total;
    const million = (bytes) => (bytes / 1e6).toFixed(1);
    say(`status.${step}`, { loaded: million(loaded), total: million(total) });
  },
  painted({ document }) {
    opened = library().then(() => charts.paint(JSON.parse(document)));
    return opened;
  },
  async patch({ patch }) {
    await opened;
    await charts.patch(JSON.parse(patch));
  },
  state({ page }) {
    show(JSON.parse(page));
    performance.clearMarks('kv-updated'); // a browser keeps every mark
    performance.mark('kv-updated');
  },
  ready: () => opened,
  live() {
    if (!performance.getEntriesByName('kv-painted').length) painted();
    root.dataset.kvState = 'live';
    performance.mark('kv-live');
    say(rest);
    if (!address.workerless) soon('offline', OFFLINE, () => idle(keep));
  },
  fallback({ reason }) {
    console.warn(reason);
    superseded = true;
    root.dataset.kvState = 'fallback';
    say('status.fallback', { reason });
  },
  restart({ reason }) {
    console.warn(reason);
    root.dataset.kvState = 'loading';
    say('status.restart');
  },
  failed({ reason, wasLive }) {
    root.dataset.kvState = 'error';
    say(wasLive ? 'status.stopped' : 'status.error', { reason });
    document.getElementById('retry').hidden = false;
  },
};

const python = new Python(built ? ['resume', 'plain'] : ['plain'], window.kvStart, () => query, () => missing, hear);
let opened; // the charts are painted
let superseded; // Python comes with charts of its own
let missing; // the file that they wait for

function start() {
  root.dataset.kvState = 'loading';
  document.getElementById('retry').hidden = true;
  say('status.loading');
  superseded = false;
  python.start();
  opened = paint();
  opened.catch((error) => superseded || python.fail({ reason: error.message }));
}

const ahead = (field) => python.ahead(field);
form.listen(change, choose, ahead, word);
tabs.listen(choose);
strip.listen(word);
how.listen(change, word);
own.listen(change, choose, ahead, word);
compare.listen(choose, word);
address.listen((past) => {
  python.forget(); // what waits was meant for the scenario that was left
  form.leave();
  change('address', past);
});
shortcuts.listen({
  m: () => document.getElementById('box-model').focus(),
  u: () => choose('units', document.getElementById('box-units').value === 'GiB' ? 'GB' : 'GiB'),
  c: copyLink,
  ...Object.fromEntries(tabs.names().map((name, at) => [String(at + 1), () => tabs.open(name)])),
});
document.getElementById('copy').addEventListener('click', copyLink);
document.getElementById('retry').addEventListener('click', () => {
  bokeh.forget();
  start();
});
document.getElementById('reload').addEventListener('click', () => location.reload());
if (address.workerless) import('./offline.mjs').then((offline) => offline.leave()).catch(console.info);
dark.addEventListener('change', () => change('theme', document.getElementById('box-theme').value));
document.getElementById('unscripted').remove();
reword();
open();
start();
