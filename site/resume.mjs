// The first way to start: Python goes on from a memory snapshot that holds the app and its document.
import { instead } from './arrivals.mjs';
import { expand, headerOf, laidOut, recreate, restore } from './memory.mjs';

/** Python with `calculator.app.resumable.session` as the build left it. */
export async function resume(site, arrivals, step) {
  const { snapshot, extensions, files, script, wasm } = site.resume;
  arrivals.expect(snapshot, ...extensions, files, script, wasm);
  const core = arrivals.unpacked(wasm, 'application/wasm');
  const createModule = arrivals.unpacked(script, 'text/javascript').then(imported);
  const kept = arrivals.bytes(snapshot);
  const modules = Promise.all(extensions.map((part) => arrivals.bytes(part)));
  const texts = arrivals.unpacked(files, 'application/json').then((response) => response.json());
  const come = Promise.all([core, createModule, kept, modules, texts]);
  come.catch(() => {}); // heard of below
  const { loadPyodide } = await import(`${site.runtime}pyodide.mjs`);
  const nothing = `${site.runtime}nothing.zip`;
  let memory;
  const header = new Uint8Array(site.resume.header);
  const started = instead(
    { [`${site.runtime}pyodide.asm.wasm`]: core, [nothing]: Promise.resolve(new Response('')) },
    async () =>
      loadPyodide({
        indexURL: site.runtime,
        stdLibURL: nothing, // what is imported is in the snapshot
        lockFileContents: site.resume.lock,
        packageBaseUrl: site.runtime,
        _loadSnapshot: header, // only as long as Pyodide's own; the rest goes where it belongs by itself
        _snapshotDeserializer: recreate,
        createPyodideModule: laidOut(
          await createModule,
          async (exports) => {
            const found = (await modules).map((packed, at) => expand(exports, packed, extensions[at].size));
            memory = expand(exports, await kept, snapshot.size);
            step('start');
            return extensions.map(({ path }, at) => ({ path, module: new WebAssembly.Module(found[at]) }));
          },
          (Module, pristine) => {
            header.set(headerOf(memory));
            restore(memory, Module, pristine);
          },
        ),
      }),
  );
  const [python] = await Promise.race([Promise.all([started, come]), arrivals.broken]);
  const folder = '/lib/python3.14/site-packages/';
  for (const [name, text] of Object.entries(await texts)) {
    python.FS.mkdirTree(folder + name.slice(0, name.lastIndexOf('/')));
    python.FS.writeFile(folder + name, text);
  }
  return python;
}

async function imported(response) {
  const url = URL.createObjectURL(await response.blob());
  try {
    return (await import(url)).default;
  } finally {
    URL.revokeObjectURL(url);
  }
}
