// The first way to start: Python goes on from a memory snapshot that holds the app and its document.
import { instead } from './arrivals.mjs';
import { laidOut, recreate, restore } from './memory.mjs';

/** Python with `calculator.app.resumable.session` as the build left it. */
export async function resume(site, arrivals, step) {
  const { snapshot, extensions, script, wasm } = site.resume;
  arrivals.expect(snapshot, ...extensions, wasm);
  // The scripts first: a browser asks a host for six files at a time.
  const scripts = Promise.all([arrivals.module(`${site.runtime}pyodide.mjs`), arrivals.module(script.url)]);
  // All that is compiled is so while it comes, whatever else there is to wait for.
  const compiled = (part) => WebAssembly.compileStreaming(arrivals.unpacked(part, 'application/wasm'));
  const core = compiled(wasm);
  const kept = arrivals.bytes(snapshot);
  const modules = Promise.all(extensions.map(async (part) => ({ path: part.path, module: await compiled(part) })));
  const come = Promise.all([core, kept, modules]);
  come.catch(() => {}); // heard of below
  const [{ loadPyodide }, { default: createModule }] = await scripts;
  const nothing = `${site.runtime}nothing.zip`;
  const header = new Uint8Array(snapshot.header);
  // Pyodide would compile what it fetches; this worker gives it what is compiled.
  WebAssembly.instantiateStreaming = async (compiling, imports) => {
    const module = await compiling;
    return { module, instance: await WebAssembly.instantiate(module, imports) };
  };
  const started = instead(
    { [`${site.runtime}pyodide.asm.wasm`]: core, [nothing]: Promise.resolve(new Response('')) },
    () =>
      loadPyodide({
        indexURL: site.runtime,
        stdLibURL: nothing, // what is imported is in the snapshot
        lockFileContents: site.resume.lock,
        packageBaseUrl: site.runtime,
        _loadSnapshot: header, // only as long as Pyodide's own; the rest goes where it belongs by itself
        _snapshotDeserializer: recreate,
        createPyodideModule: laidOut(createModule, modules, async (...memory) => {
          const packed = await kept;
          step('start');
          header.set(restore(packed, snapshot, ...memory));
        }),
      }),
  );
  const [python] = await Promise.race([Promise.all([started, come]), arrivals.broken]);
  return python;
}
