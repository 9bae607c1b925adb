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
  const { arrivals, broken } = watch([site.packages, site.stdlib, site.wasm]);
  const packages = fetch(site.packages.url).then((response) => response.arrayBuffer());
  packages.catch(() => {}); // `broken` says it, with the name
  const { loadPyodide } = await import(`${site.runtime}pyodide.mjs`);
  const pyodide = loadPyodide({
    indexURL: site.runtime,
    stdLibURL: site.stdlib.url,
    env: { PANEL_CDN_ROOT: site.panel },
  });
  const python = await Promise.race([pyodide, broken]); // without its wasm Pyodide waits for ever
  const archive = await packages;
  await Promise.all(arrivals);
  say('progress', { step: 'start' });
  python.unpackArchive(archive, 'zip', { extractDir: python.runPython('import site; site.getsitepackages()[0]') });
  // Importing Panel from an asynchronous run has crashed browsers (pyodide#6106).
  return python.runPython('from calculator.app import browser; browser').Session(query, system);
}

/** Tell the page how many bytes of `parts` have come, whoever fetches them: Pyodide fetches two by itself.
 * `arrivals` are promises, one more for each fetch, that fail with the name of a part that does not come whole;
 * `broken` fails with the first of them, and never ends otherwise. */
function watch(parts) {
  const total = parts.reduce((sum, part) => sum + part.bytes, 0);
  const fetchPlainly = self.fetch;
  const arrivals = [];
  let loaded = 0;
  let fail;
  const broken = new Promise((_, reject) => (fail = reject));
  broken.catch(() => {}); // whoever waits for it hears of it
  self.fetch = async (...request) => {
    const response = await fetchPlainly(...request).catch((error) => {
      const failure = new Error(`${request[0]}: ${error.message}`);
      fail(failure);
      throw failure;
    });
    const part = parts.find(({ url }) => url === response.url);
    if (part) {
      const arrival = arrive(part, response.clone());
      arrival.catch(fail);
      arrivals.push(arrival);
    }
    return response;
  };
  async function arrive({ url, bytes }, response) {
    if (!response.ok) throw new Error(`${url}: HTTP ${response.status}`);
    let came = 0;
    try {
      for await (const { length } of response.body) {
        came += length;
        say('progress', { step: 'runtime', loaded: loaded += length, total });
      }
    } catch (error) {
      throw new Error(`${url}: ${error.message}`);
    }
    if (came !== bytes) throw new Error(`${url}: ${came} of ${bytes} bytes`);
  }
  return { arrivals, broken };
}
