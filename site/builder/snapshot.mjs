// Makes the memory snapshot, and proves that Python goes on from it: node snapshot.mjs WORK
// WORK holds runtime/, stdlib.zip, code.zip, modules.json (what to import), libraries.json and libraries/<n> (extension
// modules). Written to WORK/out: snapshot.zst, documents.json (the page's charts), manifest.json.
// Two runs over the same files write the same bytes: the clock stands still, and chance is always the same.
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';

globalThis.XMLHttpRequest ??= class {};   // panel.io.pyodide imports it from js; Node.js has none
Date.now = () => 946_728_000_000;
performance.now = () => 0;
let drawn = 1;
const random = () => (drawn = (drawn * 48_271) % 2_147_483_647);
Math.random = () => random() / 2_147_483_647;
crypto.randomFillSync = globalThis.crypto.getRandomValues = (view) => view.map((_, at) => (view[at] = random()));

const work = path.resolve(process.argv[2]);
const { loadPyodide } = await import(`${work}/runtime/pyodide.mjs`);
const { default: createModule } = await import(`${work}/runtime/pyodide.asm.mjs`);
const { laidOut, nameOf, pack, recreate, restore } = await import('./memory.mjs');
const bytes = (name) => new Uint8Array(fs.readFileSync(`${work}/${name}`));
const text = (name) => fs.readFileSync(`${work}/${name}`, 'utf8');
const SITE_PACKAGES = '/lib/python3.14/site-packages';
const settings = {
  indexURL: `${work}/runtime/`, packageBaseUrl: `${work}/runtime/`,
  lockFileContents: JSON.parse(text('runtime/pyodide-lock.json')),
  env: { HOME: '/home/pyodide', PYTHONHASHSEED: '0', PYTHONOPTIMIZE: '2' },
  stdout: (line) => console.error(line), stderr: (line) => console.error(line),
};

/** Python with the whole app to import, and these extension modules at fixed addresses. */
async function start(extensions, keep) {
  const py = await loadPyodide({
    ...settings, stdLibURL: `${work}/stdlib.zip`, _makeSnapshot: true,
    createPyodideModule: laidOut(createModule, extensions, (_, ...memory) => keep(...memory)),
  });
  py.unpackArchive(bytes('code.zip'), 'zip', { extractDir: SITE_PACKAGES });
  py.runPython('import importlib\nimportlib.invalidate_caches()');   // by a clock that stands still nothing is new
  return py;
}

const compiled = (extensions) => extensions.map(({ path, bytes }) => ({ path, module: new WebAssembly.Module(bytes) }));

/** The stored snapshot of a Python that holds the session, what to know of it, and the session's documents. */
async function make(extensions) {
  let memory;
  const py = await start(compiled(extensions), (...found) => (memory = found));
  py.globals.set('modules', text('modules.json'));
  const documents = py.runPython('import json\nfrom calculator.app import resumable\nresumable.prepare(json.loads(modules))');
  // What is kept lives for ever: a collection that looks through it would stop a slider for a quarter of a second.
  py.runPython('import gc, sys\ndel modules\nsys._clear_internal_caches()\ngc.collect()\ngc.freeze()');
  blank(py._module);
  const dictionary = py.runPython('from panel.io import pyodide as held\nheld._dict_converter');
  const get = py._module.__hiwire_get;      // a freed slot reads as undefined; the snapshot wants null
  py._module.__hiwire_get = (index) => get(index) ?? null;
  const snapshot = py.makeMemorySnapshot({ serializer: (object) => nameOf(object, { dictionary }) });
  return { ...pack(snapshot, ...memory), documents };
}

/** Overwrite free memory with zeros: take it, the largest pieces first, without growing, and give it back. */
function blank(Module) {
  const end = Module._sbrk(0);
  const taken = [];
  for (let size = 1 << 20; size >= 8; size = size > 1024 ? size >> 1 : size - 8) {
    for (;;) {
      const at = Module._malloc(size);
      if (at + size > end) { Module._free(at); break; }
      Module.HEAPU8.fill(0, at, at + size);
      taken.push(at);
    }
  }
  for (const at of taken) Module._free(at);
}

/** Bring the snapshot back as a worker does, and drive every control of what came back: it may not read files. */
async function prove(zstd, known, extensions) {
  const header = new Uint8Array(known.header);
  fs.writeFileSync(`${work}/nothing.zip`, '');
  const py = await loadPyodide({
    ...settings, stdLibURL: `${work}/nothing.zip`, _loadSnapshot: header, _snapshotDeserializer: recreate,
    createPyodideModule: laidOut(createModule, compiled(extensions), (...memory) => {
      header.set(restore(zstd, known, ...memory));
    }),
  });
  py.runPython(`
from calculator.app import rehearsal, resumable
resumable.session.resume("", '{"language": "en", "theme": "light"}', '{"language": "zh", "theme": "dark"}')
rehearsal.drive(resumable.session)`);
}

const compress = (content) => zlib.zstdCompressSync(content, { params: {
  [zlib.constants.ZSTD_c_compressionLevel]: 19, [zlib.constants.ZSTD_c_windowLog]: 26, [zlib.constants.ZSTD_c_checksumFlag]: 1,
} });

async function step(name, run) {
  console.log(`step ${name}`);
  try { return await run(); } catch (error) {
    const lines = String(error.message ?? error).trim().split('\n');
    console.error(`${name}: ${lines.findLast((line) => /^\w*(\.\w+)*(Error|Exception|NotFound)\b/.test(line)) ?? lines.at(-1)}`);
    process.exit(1);
  }
}

fs.mkdirSync(`${work}/out`, { recursive: true });
const extensions = JSON.parse(text('libraries.json')).map((name, at) => ({ path: `${SITE_PACKAGES}/${name}`, bytes: bytes(`libraries/${at}`) }));
const { packed, known, documents } = await step('snapshot', () => make(extensions));
const zstd = await step('compress', () => compress(packed));
await step('resume', () => prove(zstd, known, extensions));
fs.writeFileSync(`${work}/out/snapshot.zst`, zstd);
fs.writeFileSync(`${work}/out/documents.json`, documents);
fs.writeFileSync(`${work}/out/manifest.json`, JSON.stringify({ snapshot: known, extensions: extensions.map(({ path }) => path) }));
process.exit(0);
