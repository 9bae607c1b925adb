// Runs Pyodide under Node.js three times: to see what the app imports, to compile that, and to prove the result.
//   node trim.mjs WORK   (WORK holds runtime/, stdlib.zip, sources.zip, builder/*.py; the result is in WORK/out)
// Lines on stdout: "step <name>", "compiled <done> <total>". The last line on stderr says what failed.
import fs from 'node:fs';
import path from 'node:path';

globalThis.XMLHttpRequest ??= class {};   // panel.io.pyodide imports it from js; Node.js has none
const work = path.resolve(process.argv[2]);
const { loadPyodide } = await import(`${work}/runtime/pyodide.mjs`);
const lockFileContents = JSON.parse(fs.readFileSync(`${work}/runtime/pyodide-lock.json`, 'utf8'));
const SITE_PACKAGES = '/lib/python3.14/site-packages';
const REHEARSE = 'from calculator.app import rehearsal\nrehearsal.rehearse()';
// The way into a traceback is imported by the first error; an error must be readable in the trimmed site too.
const FAIL_ONCE = 'raise RuntimeError("rehearsed")';

async function start(stdlib, packages) {
  const py = await loadPyodide({
    indexURL: `${work}/runtime/`, stdLibURL: stdlib, lockFileContents, packageBaseUrl: `${work}/runtime/`,
    env: { HOME: '/home/pyodide', PYTHONHASHSEED: '0', PANEL_CDN_ROOT: './panel/' },
    stdout: (line) => console.error(line), stderr: (line) => console.error(line),
  });
  if (packages) py.unpackArchive(new Uint8Array(fs.readFileSync(packages)), 'zip', { extractDir: SITE_PACKAGES });
  return py;
}

function rehearse(py) {
  py.runPython(REHEARSE);
  try { py.runPython(FAIL_ONCE); } catch (error) { if (!String(error).includes('rehearsed')) throw error; }
}

async function trace() {
  const py = await start(`${work}/stdlib.zip`, `${work}/sources.zip`);
  rehearse(py);
  return py.runPython('import sys, json; json.dumps(sorted(sys.modules))');
}

async function compile(imported) {   // a fresh interpreter: bytecode may show what the process did before
  const py = await start(`${work}/stdlib.zip`);
  for (const folder of ['builder', 'out']) py.FS.mkdirTree(`/work/${folder}`);
  for (const name of ['sources.zip', 'stdlib.zip', ...fs.readdirSync(`${work}/builder`).sort().map((file) => `builder/${file}`)])
    py.FS.writeFile(`/work/${name}`, new Uint8Array(fs.readFileSync(`${work}/${name}`)));
  py.globals.set('imported_json', imported);
  py.globals.set('compiled', (done, total) => { if (done % 20 === 0 || done === total) console.log(`compiled ${done} ${total}`); });
  py.runPython(`
import json, sys
from pathlib import Path
sys.path.insert(0, "/work")
from builder import interpreter
interpreter.build(Path("/work"), json.loads(imported_json), compiled)
`);
  for (const name of ['packages.zip', 'stdlib.zip']) fs.writeFileSync(`${work}/out/${name}`, py.FS.readFile(`/work/out/${name}`));
}

async function step(name, run) {
  console.log(`step ${name}`);
  try { return await run(); } catch (error) {
    const lines = String(error.message ?? error).trim().split('\n');
    console.error(`${name}: ${lines.findLast((line) => /^\w*(\.\w+)*(Error|Exception)\b/.test(line)) ?? lines.at(-1)}`);
    process.exit(1);
  }
}

fs.mkdirSync(`${work}/out`, { recursive: true });
const imported = await step('rehearse', trace);
await step('compile', () => compile(imported));
await step('prove', async () => rehearse(await start(`${work}/out/stdlib.zip`, `${work}/out/packages.zip`)));
process.exit(0);
