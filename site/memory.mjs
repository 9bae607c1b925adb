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

/** A `createPyodideModule` for loadPyodide. `before(exports)` gives the extension modules `[{ path, module }]`, in their
 * order, when WebAssembly is there; `after(Module, pristine)` runs before Python does. `pristine` is the part of the
 * memory that WebAssembly itself filled. */
export function laidOut(createModule, before, after = () => {}) {
  return (settings) =>
    new Promise((resolve, reject) => {
      const instantiate = settings.instantiateWasm;
      let extensions, pristine;
      settings.instantiateWasm = (imports, receive) =>
        instantiate(imports, async (instance, module) => {
          try {
            const words = new Uint32Array(instance.exports.memory.buffer);
            pristine = words.slice(0, words.findLastIndex((word) => word !== 0) + 1);
            extensions = await before(instance.exports);
            receive(instance, module);
          } catch (error) {
            reject(error);
          }
        });
      settings.preRun.push((Module) => {
        for (const { path, module } of extensions) {
          const flags = { global: false, nodelete: true, loadAsync: false, allowUndefined: true };
          Module.preloadedWasm[path] = Module.loadWebAssemblyModule(module, flags, path, {});
        }
      });
      createModule(settings).then(async (Module) => {
        await after(Module, pristine);
        resolve(Module);
      }).catch(reject);
    });
}

/** Unpack zstd with the decoder that Pyodide's WebAssembly carries, in memory that Python does not have yet. */
export function expand({ memory, ...exports }, packed, size) {
  const room = exports.ZSTD_estimateDCtxSize();
  const place = memory.buffer.byteLength;
  const source = place + Math.ceil(room / 16) * 16;
  const target = source + Math.ceil(packed.length / 16) * 16;
  memory.grow(Math.ceil((target + size - place) / 65_536));
  new Uint8Array(memory.buffer).set(packed, source);
  const decoder = exports.ZSTD_initStaticDCtx(place, room);
  const written = exports.ZSTD_decompressDCtx(decoder, target, size, source, packed.length) >>> 0;
  if (written !== size) throw new Error(`zstd gave ${written} for ${size} bytes`);
  return new Uint8Array(memory.buffer, target, size).slice();
}

// The stored form: three lengths, Pyodide's own header, a bit for each page that is not empty, and these pages. What
// WebAssembly itself fills is stored as the difference to that, mostly zeros.
const PAGE = 1024; // bytes
const WORDS = PAGE / 4;
const START = 12;

/** The stored form of a snapshot of Pyodide's. */
export function pack(snapshot, pristine) {
  const [, start] = new Uint32Array(snapshot.buffer, snapshot.byteOffset, 2);
  const header = snapshot.slice(0, start);
  const heap = new Uint32Array(snapshot.slice(start).buffer);
  differ(heap, pristine);
  const marks = new Uint8Array(Math.ceil(heap.length / WORDS / 32) * 4);
  const pages = [];
  for (let at = 0; at < heap.length; at += WORDS) {
    const page = heap.subarray(at, at + WORDS);
    if (page.every((word) => word === 0)) continue;
    marks[at / WORDS >> 3] |= 1 << (at / WORDS & 7);
    pages.push(page);
  }
  const packed = new Uint8Array(START + header.length + marks.length + pages.length * PAGE);
  packed.set(new Uint8Array(Uint32Array.of(header.length, marks.length, heap.byteLength).buffer));
  packed.set(header, START);
  packed.set(marks, START + header.length);
  const words = new Uint32Array(packed.buffer, START + header.length + marks.length);
  pages.forEach((page, at) => words.set(page, at * WORDS));
  return packed;
}

/** Pyodide's header of a stored snapshot. */
export function headerOf(packed) {
  return packed.slice(START, START + new Uint32Array(packed.buffer, 0, 1)[0]);
}

/** Write a stored snapshot into the memory of a module in which Python has not started. */
export function restore(packed, Module, pristine) {
  const [headerBytes, markBytes, heapBytes] = new Uint32Array(packed.buffer, 0, 3);
  if (Module.HEAPU8.length < heapBytes) Module.growMemory(heapBytes);
  if (Module.HEAPU8.length < heapBytes) throw new Error(`no memory: ${heapBytes} bytes were refused`);
  const marks = packed.subarray(START + headerBytes, START + headerBytes + markBytes);
  const pages = new Uint32Array(packed.buffer, START + headerBytes + markBytes);
  const heap = Module.HEAPU32;
  const kept = (page) => page < markBytes * 8 && marks[page >> 3] & (1 << (page & 7));
  heap.fill(0);
  let at = 0;
  for (let page = 0; page < markBytes * 8; page++) {
    const first = page;
    while (kept(page)) page++;
    heap.set(pages.subarray(at, (at += (page - first) * WORDS)), first * WORDS);
  }
  differ(heap, pristine);
}

/** `heap` as its difference to `pristine`, and back again. */
function differ(heap, pristine) {
  for (let at = 0; at < pristine.length; at++) heap[at] ^= pristine[at];
}
