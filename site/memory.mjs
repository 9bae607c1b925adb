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
 * order, when WebAssembly is there; `after(Module, exports, pristine)` runs before Python does. `pristine` is the part
 * of the memory that WebAssembly itself filled. */
export function laidOut(createModule, before, after = () => {}) {
  return (settings) =>
    new Promise((resolve, reject) => {
      const instantiate = settings.instantiateWasm;
      let extensions, exports, pristine;
      settings.instantiateWasm = (imports, receive) =>
        instantiate(imports, async (instance, module) => {
          try {
            exports = instance.exports;
            const words = new Uint32Array(exports.memory.buffer);
            let filled = words.length;
            while (words[filled - 1] === 0) filled--;
            pristine = words.slice(0, filled);
            extensions = await before(exports);
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
        await after(Module, exports, pristine);
        resolve(Module);
      }).catch(reject);
    });
}

const aligned = (size) => Math.ceil(size / 16) * 16;

/** The bytes that `unpack` needs below the place where it writes. */
const below = ({ ZSTD_estimateDCtxSize }, packed) => aligned(ZSTD_estimateDCtxSize()) + aligned(packed.length);

/** Unpack zstd to `target`, by the decoder that Pyodide's WebAssembly carries, while Python does not run yet. */
function unpack({ memory, ...exports }, packed, size, target) {
  const source = target - aligned(packed.length);
  new Uint8Array(memory.buffer).set(packed, source);
  const decoder = exports.ZSTD_initStaticDCtx(target - below(exports, packed), exports.ZSTD_estimateDCtxSize());
  const written = exports.ZSTD_decompressDCtx(decoder, target, size, source, packed.length) >>> 0;
  if (written !== size) throw new Error(`zstd gave ${written} for ${size} bytes`);
}

/** A copy of unpacked zstd. */
export function expand(exports, packed, size) {
  const { memory } = exports;
  const target = memory.buffer.byteLength + below(exports, packed);
  memory.grow(Math.ceil((target + size - memory.buffer.byteLength) / BLOCK));
  unpack(exports, packed, size, target);
  return new Uint8Array(memory.buffer, target, size).slice();
}

// The stored form: three lengths, Pyodide's own header, a bit for each page that is not empty, and these pages. What
// WebAssembly itself fills is stored as the difference to that, mostly zeros.
const PAGE = 1024; // bytes
const BLOCK = 65_536; // of WebAssembly's memory
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

/** The sizes that `restore` must know of a stored snapshot: its own, its Pyodide header's, and the heap's. */
export function sizes(packed) {
  const [header, , heap] = new Uint32Array(packed.buffer, 0, 3);
  return { size: packed.length, header, heap };
}

/** Write a stored snapshot, still in zstd, into the memory of a module in which Python has not started; give Pyodide's
 * header. Unpacked at the very end of the memory, every page lies above its place, so all can move down in their order. */
export function restore(zstd, { size, heap }, Module, exports, pristine) {
  const end = Math.ceil(Math.max(heap, exports.sbrk(0) + below(exports, zstd) + size + 16) / BLOCK) * BLOCK;
  if (Module.HEAPU8.length < end) Module.growMemory(end);
  if (Module.HEAPU8.length < end) throw new Error(`no memory: ${end} bytes were refused`);
  const memory = Module.HEAPU8;
  const target = Math.floor((memory.length - size) / 16) * 16;
  unpack(exports, zstd, size, target);
  const [headerBytes, markBytes] = new Uint32Array(memory.buffer, target, 2);
  const header = memory.slice(target + START, target + START + headerBytes);
  const marks = memory.slice(target + START + headerBytes, target + START + headerBytes + markBytes);
  let from = target + START + headerBytes + markBytes;
  let written = 0;
  for (let page = 0; page < markBytes * 8; page++) {
    const first = page;
    while (page < markBytes * 8 && marks[page >> 3] & (1 << (page & 7))) page++;
    if (page === first) continue;
    const length = (page - first) * PAGE;
    memory.fill(0, written, first * PAGE);
    memory.copyWithin(first * PAGE, from, from + length);
    written = page * PAGE;
    from += length;
  }
  memory.fill(0, written);
  differ(Module.HEAPU32, pristine);
  return header;
}

/** `heap` as its difference to `pristine`, and back again. */
function differ(heap, pristine) {
  for (let at = 0; at < pristine.length; at++) heap[at] ^= pristine[at];
}
