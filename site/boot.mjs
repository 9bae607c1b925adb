// The page: reads the address, starts the worker, shows what it answers, writes the address back.
import * as address from './address.mjs';
import * as charts from './charts.mjs';
import * as compare from './compare.mjs';
import { copy } from './copy.mjs';
import * as form from './form.mjs';
import * as how from './how.mjs';
import * as own from './own.mjs';
import * as shortcuts from './shortcuts.mjs';
import * as strip from './strip.mjs';
import * as tabs from './tabs.mjs';

const root = document.documentElement;
const site = JSON.parse(document.getElementById('site').textContent);
const at = (url) => new URL(url, document.baseURI).href;
const part = ({ url, bytes }) => ({ url: at(url), bytes });
const parts = {
  runtime: at(site.runtime),
  panel: at(site.panel),
  packages: part(site.packages),
  stdlib: part(site.stdlib),
  wasm: part(site.wasm),
};
const dark = matchMedia('(prefers-color-scheme: dark)');
const system = () => ({
  language: navigator.language.startsWith('zh') ? 'zh' : 'en',
  theme: dark.matches ? 'dark' : 'light',
});

let worker;
let live = false;
let query = location.search.slice(1);
let status = { key: 'status.loading', values: {} };
const waiting = new Map(); // field -> text, in the order of the last change of each
let sent = new Map(); // the changes that are with Python
const asked = []; // resolvers of result()

// ---- words and pieces -------------------------------------------------------------------------------------------

const word = (key, values = {}) =>
  site.texts[root.lang][key].replaceAll(/\{(\w+)\}/g, (_, name) => values[name]);

function reword() {
  for (const element of document.querySelectorAll('[data-text]')) element.textContent = word(element.dataset.text);
  for (const element of document.querySelectorAll('[data-name]')) element.setAttribute('aria-label', word(element.dataset.name));
  form.reword();
  own.reword();
  say(status.key, status.values);
}

function say(key, values = {}) {
  status = { key, values };
  document.getElementById('status').textContent = word(key, values);
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

/** The default answer is in the page. A link to another scenario hides it: no flash of numbers that are not its. */
function open() {
  const others = [...new URLSearchParams(query).keys()].filter((key) => !['v', 'lang', 'theme', 'tab'].includes(key));
  const first = site.pages[root.lang];
  fill(first.pieces);
  strip.refresh();
  form.show(first.form);
  describe(first.summary);
  if (others.length) root.dataset.kvAnswer = 'waiting';
  else performance.mark('kv-answer');
}

function show(page) {
  root.dataset.theme = page.theme;
  if (root.lang !== page.language) {
    root.lang = page.language;
    reword();
  }
  delete root.dataset.kvAnswer;
  fill(page.pieces);
  strip.refresh();
  form.show(page.form);
  own.show(page.own);
  compare.refresh();
  if (!ahead('tab')) tabs.show(page.tab);
  describe(page.summary);
  document.title = `${page.title} · ${word('shell.title')}`;
  query = page.address;
  address.follow(query);
}

// ---- changes --------------------------------------------------------------------------------------------------------

function change(field, text) {
  waiting.delete(field);
  waiting.set(field, text);
  // The page itself can follow these two at once.
  if (field === 'theme') root.dataset.theme = text === 'auto' ? system().theme : text;
  if (field === 'language') {
    root.lang = text === 'auto' ? system().language : text;
    reword();
  }
  send();
}

/** Whether the user has changed a field since Python's answer. */
const ahead = (field) => waiting.has(field) || sent.has(field);

async function copyLink() {
  say((await copy(address.link())) ? 'shell.copied' : 'shell.copy_failed');
  soon('copied', 3000, () => live && say('status.live'));
}

/** One message is with Python at a time; what changes meanwhile is sent together, the last text of each field. */
function send() {
  if (!live || sent.size) return;
  if (waiting.size) {
    sent = new Map(waiting);
    worker.postMessage({ type: 'change', changes: Object.fromEntries(sent), system: system() });
    waiting.clear();
  } else {
    asked.forEach((_, id) => worker.postMessage({ type: 'result', id }));
  }
}

window.kvCalculator = {
  /** The estimate's JSON, once Python has answered every change made so far. */
  result: () =>
    new Promise((resolve, reject) => {
      if (root.dataset.kvState === 'error') throw new Error(document.getElementById('status').textContent);
      asked.push({ resolve, reject });
      send();
    }),
};

// ---- the worker -----------------------------------------------------------------------------------------------------

const heard = {
  progress({ step, loaded, total }) {
    const bar = document.getElementById('progress');
    if (step === 'start') bar.removeAttribute('value');
    else bar.value = loaded / total;
    const million = (bytes) => (bytes / 1e6).toFixed(1);
    say(`status.${step}`, { loaded: million(loaded), total: million(total) });
  },
  async painted({ page, ...document }) {
    await charts.paint(document);
    show(page);
    root.dataset.kvState = 'painted';
    performance.mark('kv-painted');
    live = true;
    root.dataset.kvState = 'live';
    performance.mark('kv-live');
    say('status.live');
    send();
  },
  live() {},
  patch: charts.patch,
  state({ page }) {
    sent.clear();
    show(page);
    requestAnimationFrame(() => performance.mark('kv-updated'));
    send();
  },
  result({ id, result }) {
    asked[id]?.resolve(result);
    delete asked[id];
    if (!Object.keys(asked).length) asked.length = 0;
  },
  error({ reason, detail }) {
    fail(live ? 'status.stopped' : 'status.error', reason, detail);
  },
};

async function hear({ data }) {
  try {
    await heard[data.type](data);
  } catch (error) {
    console.error(error);
    heard.error({ reason: error.message });
  }
}

function start() {
  worker?.terminate();
  live = false;
  sent.clear();
  root.dataset.kvState = 'loading';
  document.getElementById('retry').hidden = true;
  say('status.loading');
  worker = new Worker(new URL('worker.mjs', import.meta.url), { type: 'module' });
  worker.onmessage = hear;
  worker.onerror = (event) => fail('status.error', event.message || 'worker.mjs');
  worker.postMessage({ type: 'start', site: parts, query, system: system() });
}

function fail(key, reason, detail = reason) {
  worker.terminate();
  live = false;
  root.dataset.kvState = 'error';
  say(key, { reason });
  document.getElementById('retry').hidden = false;
  asked.splice(0).forEach(({ reject }) => reject(new Error(detail)));
}

form.listen(change, ahead, word);
tabs.listen((field, text) => {
  change(field, text);
  address.settle();
});
strip.listen(word);
how.listen(change, word);
own.listen(change, word);
compare.listen(change, word);
address.listen((past) => {
  waiting.clear(); // it was meant for the scenario that was left
  form.leave();
  change('address', past);
});
shortcuts.listen({
  m: () => document.getElementById('box-model').focus(),
  u: () => change('units', document.getElementById('box-units').value === 'GiB' ? 'GB' : 'GiB'),
  c: copyLink,
  ...Object.fromEntries(tabs.names().map((name, at) => [String(at + 1), () => tabs.open(name)])),
});
document.getElementById('copy').addEventListener('click', copyLink);
document.getElementById('retry').addEventListener('click', start);
dark.addEventListener('change', () => change('theme', document.getElementById('box-theme').value));
reword();
open();
start();
