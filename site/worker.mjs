// The worker: brings up Python with the app, then turns the page's messages into calls of calculator.app.browser.
// How Python comes to hold a session is the business of `start` alone.
let session;

const say = (type, content = {}) => self.postMessage({ type, ...content });

self.onmessage = async ({ data: message }) => {
  try {
    await answers[message.type](message);
  } catch (error) {
    const lines = String(error.message ?? error).trim().split('\n');
    say('error', { during: message.type, reason: lines.at(-1), detail: lines.join('\n') });
  }
};

const answers = {
  async start({ site, query, system }) {
    session = await start(site, query, system);
    say('painted', JSON.parse(session.painted()));
    say('live');
  },
  change({ changes, system }) {
    // Synchronous on purpose: a second message must not overtake the first.
    const page = session.change(changes, system, (patch, buffers) => say('patch', { patch, buffers }));
    say('state', { page: JSON.parse(page) });
  },
  result({ id }) {
    say('result', { id, result: JSON.parse(session.result()) });
  },
};

/** A session of the app in a new Python; all files are fetched at the same time. */
async function start(site, query, system) {
  reportBytes([site.packages, site.stdlib, site.wasm]);
  const packages = fetch(site.packages.url).then(whole(site.packages));
  const { loadPyodide } = await import(`${site.runtime}pyodide.mjs`);
  const python = await loadPyodide({
    indexURL: site.runtime,
    stdLibURL: site.stdlib.url,
    env: { PANEL_CDN_ROOT: site.panel },
  });
  const archive = await packages;
  say('progress', { step: 'start' });
  python.unpackArchive(archive, 'zip', { extractDir: python.runPython('import site; site.getsitepackages()[0]') });
  // Importing Panel from an asynchronous run has crashed browsers (pyodide#6106).
  return python.runPython('from calculator.app import browser; browser').Session(query, system);
}

/** Tell the page how many bytes of `parts` have come, whoever fetches them: Pyodide fetches two by itself. */
function reportBytes(parts) {
  const total = parts.reduce((sum, part) => sum + part.bytes, 0);
  const urls = new Set(parts.map((part) => part.url));
  const fetchPlainly = self.fetch;
  let loaded = 0;
  self.fetch = async (...request) => {
    const response = await fetchPlainly(...request);
    if (urls.has(response.url) && response.ok) count(response.clone().body);
    return response;
  };
  async function count(body) {
    for await (const chunk of body) say('progress', { step: 'runtime', loaded: loaded += chunk.length, total });
  }
}

/** The bytes of a response, or an error that names the file and what is wrong with it. */
const whole = (part) => async (response) => {
  if (!response.ok) throw new Error(`${part.url}: HTTP ${response.status}`);
  const bytes = await response.arrayBuffer();
  if (bytes.byteLength !== part.bytes) throw new Error(`${part.url}: ${bytes.byteLength} of ${part.bytes} bytes`);
  return bytes;
};
