// The worker: brings up Python with the app, then turns the page's messages into calls of calculator.app.browser.
import { Arrivals } from './arrivals.mjs';
import { plain } from './plain.mjs';
import { resume } from './resume.mjs';

const PAUSE = 60; // milliseconds without a change
let session, pause, refused;

const say = (type, content = {}) => self.postMessage({ type, ...content });

self.onmessage = async ({ data: message }) => {
  try {
    await answers[message.type](message);
  } catch (error) {
    const lines = String(error.message ?? error).trim().split('\n');
    say('error', { during: message.type, reason: refused ?? lines.at(-1), detail: lines.join('\n') });
  }
};

const answers = {
  async start({ rung, base, runtime, packages, stdlib, wasm, resume, ...message }) {
    hold();
    const at = (url) => new URL(url, base).href;
    const site = { runtime: at(runtime), ...full({ packages, stdlib, wasm, resume }, at) };
    session = await rungs[rung]({ site, ...message });
    say('live');
  },
  change({ changes, system }) {
    session.change(JSON.stringify(changes), JSON.stringify(system));
    tell(session);
  },
  result({ id }) {
    say('result', { id, result: JSON.parse(session.result()) });
  },
};

/** The same with every address in full, for this worker stands in another folder than the page. */
function full(part, at) {
  if (Array.isArray(part)) return part.map((inner) => full(inner, at));
  if (typeof part !== 'object') return part;
  const inner = Object.entries(part).map(([name, value]) => [name, full(value, at)]);
  return { ...Object.fromEntries(inner), ...(part.url && { url: at(part.url) }) };
}

/** Hold a lock for as long as this worker lives; not every browser or frame has locks. */
function hold() {
  const lock = `kv-worker-${performance.timeOrigin}-${Math.random()}`;
  navigator.locks?.request(lock, () => {
    say('held', { lock });
    return new Promise(() => {});
  }).catch(() => {});
}

/** What is new: first the charts, so that the page draws while Python writes the rest; what nobody waits for follows
 * when changes pause. */
function tell(session) {
  tellCharts(session);
  say('state', { page: session.page() });
  clearTimeout(pause);
  pause = setTimeout(() => {
    session.settle();
    tellCharts(session);
  }, PAUSE);
}

function tellCharts(session) {
  const patch = session.patch();
  if (patch) say('patch', { patch });
}

/** Python says many things when it gets no memory, and seldom that. */
const { grow } = WebAssembly.Memory.prototype;
WebAssembly.Memory.prototype.grow = function (pages) {
  try {
    const before = grow.call(this, pages);
    refused = undefined;
    return before;
  } catch (error) {
    refused = `${this.buffer.byteLength + pages * 65536} bytes of memory were refused: ${error.message}`;
    throw error;
  }
};

// ---- the ways to start -----------------------------------------------------------------------------------------------

const step = (name) => say('progress', { step: name });
const arriving = () => new Arrivals((bytes) => say('progress', { step: 'runtime', ...bytes }));

const rungs = {
  async resume({ site, query, system, shown, again }) {
    const python = await resume(site, arriving(), step);
    const { session } = python.runPython('from calculator.app import resumable; resumable');
    session.resume(query, JSON.stringify(system), JSON.stringify(shown));
    if (again) session.forget();
    if (query || again) tell(session); // else the page shows it already
    return session;
  },
  async plain({ site, query, system }) {
    const python = await plain(site, arriving(), step);
    // Importing Panel from an asynchronous run has crashed browsers (pyodide#6106).
    const session = python.runPython('from calculator.app import browser; browser').Session(query, JSON.stringify(system));
    say('painted', { document: session.painted() });
    tell(session);
    return session;
  },
};
