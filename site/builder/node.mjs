// Runs Pyodide under Node.js. WORK holds runtime/, builder/*.py, stdlib.zip and one archive of code.
//   node node.mjs WORK bytecode   compiles WORK/code.zip into WORK/out/code.zip
//   node node.mjs WORK trim       sees what a rehearsal of the app imports, writes only that as WORK/out/code.zip and
//                                 WORK/out/stdlib.zip, and proves it by a rehearsal with nothing else, which
//                                 WORK/out/modules.json lists
// Lines on stdout: "step <name>", "compiled <done> <total>". The last line on stderr says what failed.
import fs from 'node:fs';
import path from 'node:path';

globalThis.XMLHttpRequest ??= class {};   // panel.io.pyodide imports it from js; Node.js has none
const [work, task] = [path.resolve(process.argv[2]), process.argv[3]];
const { loadPyodide } = await import(`${work}/runtime/pyodide.mjs`);
const lockFileContents = JSON.parse(fs.readFileSync(`${work}/runtime/pyodide-lock.json`, 'utf8'));
const SITE_PACKAGES = '/lib/python3.14/site-packages';
const bytes = (name) => new Uint8Array(fs.readFileSync(`${work}/${name}`));

async function start(stdlib, code) {
  const py = await loadPyodide({
    indexURL: `${work}/runtime/`, stdLibURL: `${work}/${stdlib}`, lockFileContents, packageBaseUrl: `${work}/runtime/`,
    env: { HOME: '/home/pyodide', PYTHONHASHSEED: '0' },
    stdout: (line) => console.error(line), stderr: (line) => console.error(line),
  });
  if (code) py.unpackArchive(bytes(code), 'zip', { extractDir: SITE_PACKAGES });
  return py;
}

function rehearse(py) {
  py.runPython('from calculator.app import rehearsal\nrehearsal.rehearse()');
  // The first error imports what writes a traceback; an error must be readable in the trimmed site too.
  try { py.runPython('raise RuntimeError("rehearsed")'); } catch (error) { if (!String(error).includes('rehearsed')) throw error; }
}

async function imports(stdlib, code) {   // in their order: a module may rely on those before it
  const py = await start(stdlib, code);
  rehearse(py);
  return py.runPython('import sys, json; json.dumps(list(sys.modules))');
}

async function compile(archives, imported) {   // a fresh interpreter: bytecode may show what the process did before
  const py = await start('stdlib.zip');
  for (const folder of ['builder', 'out']) py.FS.mkdirTree(`/build/${folder}`);
  for (const name of [...fs.readdirSync(`${work}/builder`).map((file) => `builder/${file}`), ...archives]) py.FS.writeFile(`/build/${name}`, bytes(name));
  py.globals.set('imported_json', imported);
  py.globals.set('compiled', (done, total) => { if (done % 20 === 0 || done === total) console.log(`compiled ${done} ${total}`); });
  py.runPython('import json, sys\nfrom pathlib import Path\nsys.path.insert(0, "/build")\nfrom builder import interpreter');
  for (const name of archives) {
    py.globals.set('name', name);
    py.runPython('interpreter.build(Path("/build", name), Path("/build/out", name), json.loads(imported_json), compiled)');
    fs.writeFileSync(`${work}/out/${name}`, py.FS.readFile(`/build/out/${name}`));
  }
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
if (task === 'bytecode') {
  await step('bytecode', () => compile(['code.zip'], 'null'));
} else {
  const imported = await step('rehearse', () => imports('stdlib.zip', 'code.zip'));
  await step('trim', () => compile(['code.zip', 'stdlib.zip'], imported));
  const seen = await step('prove', () => imports('out/stdlib.zip', 'out/code.zip'));
  fs.writeFileSync(`${work}/out/modules.json`, seen);
}
process.exit(0);
