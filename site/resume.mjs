// The first way to start: Python goes on from a memory snapshot that holds the app and its document.
import { instead } from './arrivals.mjs';
import { expand, laidOut, recreate, restore } from './memory.mjs';

/** Python with `calculator.app.resumable.session` as the build left it. */
export async function resume(site, arrivals, step) {
  const { snapshot, extensions, script, wasm } = site.resume;
  const pyodide = import(`${site.runtime}pyodide.mjs`); // first: a browser asks a host for six files at a time
  pyodide.catch(() => {}); // heard of below
  arrivals.expect(snapshot, ...extensions, script, wasm);
  const core = arrivals.unpacked(wasm, 'application/wasm');
  const createModule = arrivals.unpacked(script, 'text/javascript').then(imported);
  const kept = arrivals.bytes(snapshot);
  const modules = Promise.all(extensions.map((part) => arrivals.bytes(part)));
  const come = Promise.all([core, createModule, kept, modules]);
  come.catch(() => {}); // heard of below
  const { loadPyodide } = await pyodide;
  const nothing = `${site.runtime}nothing.zip`;
  const header = new Uint8Array(snapshot.header);
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
          async (exports) =>
            (await modules).map((packed, at) => {
              const { path, size } = extensions[at];
              return { path, module: new WebAssembly.Module(expand(exports, packed, size)) };
            }),
          async (Module, exports, pristine) => {
            const packed = await kept;
            step('start');
            header.set(restore(packed, snapshot, Module, exports, pristine));
          },
        ),
      }),
  );
  const [python] = await Promise.race([Promise.all([started, come]), arrivals.broken]);
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
