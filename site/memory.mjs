// Python's memory, kept and brought back. The build (site/builder/snapshot.mjs) and the worker run this same code:
// a snapshot holds addresses, so both must load the same modules in the same order before Python starts.

// JavaScript objects that Python holds and that no path from `globalThis` names.
const KNOWN = {
  // Panel's converter of dictionaries (panel.io.pyodide): undefined becomes null.
  dictionary: (entries) => Object.fromEntries(entries.map(([key, value]) => [key, value ?? null])),
};

/** The object of a name that `nameOf` gave. */
export function recreate({ name }) {
  if (!(name in KNOWN)) throw new Error(`the snapshot names ${name}, which this page does not know`);
  return KNOWN[name];
}

/** The name of an object for `recreate`; `held` has, by name, the objects of the Python that is kept. */
export function nameOf(object, held) {
  for (const name of Object.keys(KNOWN)) if (held[name] === object) return { name };
  throw new Error(`Python holds an object that site/memory.mjs cannot recreate: ${String(object).slice(0, 200)}`);
}

/** A `createPyodideModule` for loadPyodide. `extensions` are the extension modules `[{ path, module }]`, or a promise of
 * them, in their order; `after(Module, exports, pristine)` runs before Python does. `pristine` is `low` memory as
 * WebAssembly itself fills it. */
export function laidOut(createModule, extensions, after = () => {}) {
  return (settings) =>
    new Promise((resolve, reject) => {
      const instantiate = settings.instantiateWasm;
      let modules, exports, pristine;
      settings.instantiateWasm = (imports, receive) =>
        instantiate(imports, async (instance, module) => {
          try {
            exports = instance.exports;
            pristine = low(exports).slice();
            modules = await extensions;
            receive(instance, module);
          } catch (error) {
            reject(error);
          }
        });
      settings.preRun.push((Module) => {
        for (const { path, module } of modules) {
          const flags = { global: false, nodelete: true, loadAsync: false, allowUndefined: true };
          Module.preloadedWasm[path] = Module.loadWebAssemblyModule(module, flags, path, {});
        }
      });
      createModule(settings).then(async (Module) => {
        await after(Module, exports, pristine);
        resolve(Module);
      }).catch(reject);
    });
}

// WebAssembly's memory is data, stack and heap, in this order. The stored form is the heap; the data as difference to
// what WebAssembly itself fills in, mostly zeros; and Pyodide's own header. On the stack nothing is alive.
const BLOCK = 65_536; // of WebAssembly's memory
const aligned = (size) => Math.ceil(size / 16) * 16;

/** The data: what lies below the stack, in words. */
const low = ({ memory, __stack_low }) => new Uint32Array(memory.buffer, 0, (__stack_low.value >>> 0) / 4);

/** Where the heap begins. */
const bottom = ({ __heap_base }) => __heap_base.value >>> 0;

/** The stored form of a snapshot of Pyodide's, and what `restore` must know of it: the lengths of its own, of Pyodide's
 * header, and of the memory. */
export function pack(snapshot, exports, pristine) {
  const [, start] = new Uint32Array(snapshot.buffer, snapshot.byteOffset, 2);
  const heap = snapshot.subarray(start + bottom(exports));
  const data = new Uint32Array(snapshot.slice(start, start + pristine.byteLength).buffer).map((word, at) => word ^ pristine[at]);
  const parts = [heap, new Uint8Array(data.buffer), snapshot.subarray(0, start)];
  const size = parts.reduce((sum, part) => sum + part.length, 0);
  const packed = new Uint8Array(size);
  parts.reduce((at, part) => (packed.set(part, at), at + part.length), 0);
  return { packed, known: { size, header: start, memory: snapshot.length - start } };
}

/** Write a stored snapshot, still in zstd, into the memory of a module in which Python has not started; give Pyodide's
 * header. The decoder is that of Pyodide's WebAssembly. It writes the heap in its place, and the rest behind it; it works
 * on the stack and behind all that. */
export function restore(zstd, { size, header, memory }, Module, exports, pristine) {
  const source = aligned(bottom(exports) + size);
  const decoder = source + aligned(zstd.length);
  const end = Math.ceil((decoder + exports.ZSTD_estimateDCtxSize()) / BLOCK) * BLOCK;
  if (Module.HEAPU8.length < end) Module.growMemory(end);
  const bytes = Module.HEAPU8;
  if (bytes.length < end) throw new Error(`no memory: ${end} bytes were refused`);
  bytes.set(zstd, source);
  const context = exports.ZSTD_initStaticDCtx(decoder, exports.ZSTD_estimateDCtxSize());
  const written = exports.ZSTD_decompressDCtx(context, bottom(exports), size, source, zstd.length) >>> 0;
  if (written !== size) throw new Error(`zstd gave ${written} for ${size} bytes`);
  const data = low(exports);
  const stored = new Uint32Array(bytes.buffer, memory, data.length);
  for (let at = 0; at < data.length; at++) data[at] = stored[at] ^ pristine[at];
  const kept = bytes.slice(memory + data.byteLength, memory + data.byteLength + header);
  bytes.fill(0, memory);
  return kept;
}
