// Files for Python: fetched all at once, counted as they come, checked before they are used.

const PAUSE = 250; // milliseconds between two reports: each costs the page a frame

/** Fetches parts `{ url, bytes, sha256 }`; `tell({ loaded, total, file })` hears how far they are, and of one to come. */
export class Arrivals {
  constructor(tell) {
    this.tell = tell;
    this.loaded = this.total = 0;
    this.missing = new Set();
    /** Rejects with the first part that does not come whole: Pyodide waits for ever for its WebAssembly. */
    this.broken = new Promise((_, reject) => (this.break = reject));
    this.broken.catch(() => {});
  }

  /** Names the parts that are about to be fetched, so that the total is right from the start. */
  expect(...parts) {
    for (const { url, bytes } of parts) {
      this.total += bytes;
      this.missing.add(url);
    }
    this.report();
  }

  /** Tell soon; of the last part at once, for what comes next tells of itself. */
  move() {
    if (this.missing.size) this.waiting ??= setTimeout(() => this.report(), PAUSE);
    else this.report();
  }

  report() {
    clearTimeout(this.waiting);
    this.waiting = undefined;
    const [file] = this.missing;
    this.tell({ loaded: this.loaded, total: this.total, file });
  }

  /** The content of a part as a stream, and a promise of `whole`, its checked bytes. */
  async open({ url, bytes, sha256 }) {
    const response = await fetch(url).catch((error) => {
      throw new Error(`${url}: ${error.message}`);
    });
    if (!response.ok) throw new Error(`${url}: HTTP ${response.status}`);
    const data = new Uint8Array(bytes);
    let came = 0;
    let finish, fail;
    const whole = new Promise((resolve, reject) => ([finish, fail] = [resolve, reject]));
    whole.catch(() => {}); // whoever waits for it hears of it
    const counted = new TransformStream({
      transform: (chunk, controller) => {
        if (came + chunk.length > bytes) throw new Error(`more than ${bytes} bytes`);
        data.set(chunk, came);
        came += chunk.length;
        this.loaded += chunk.length;
        if (came === bytes) this.missing.delete(url);
        this.move();
        controller.enqueue(chunk);
      },
      flush: async () => {
        if (came !== bytes) throw new Error(`${came} of ${bytes} bytes`);
        if (((await digest(data)) ?? sha256) !== sha256) throw new Error('not the file that this page was built with');
        finish(data);
      },
    });
    // Also when the reader gives up, as the one that unpacks does over data that is no gzip.
    response.body.pipeTo(counted.writable).catch(({ message }) => {
      const error = new Error(`${url}: ${message}`);
      fail(error);
      this.break(error);
    });
    return { stream: counted.readable, whole };
  }

  /** A module: the browser fetches it by itself, uncounted and unchecked, and is quicker with it. */
  async module(url) {
    this.missing.add(url);
    const module = await import(url);
    this.missing.delete(url);
    this.move();
    return module;
  }

  /** The checked bytes of a part. */
  async bytes(part) {
    const { stream, whole } = await this.open(part);
    const reader = stream.getReader();
    while (!(await reader.read()).done);
    return whole;
  }

  /** A gzipped part, unpacked, as the answer to a request for a file of this type. */
  async unpacked(part, type) {
    const { stream } = await this.open(part);
    return new Response(stream.pipeThrough(new DecompressionStream('gzip')), { headers: { 'Content-Type': type } });
  }
}

/** SHA-256 in hexadecimal; nothing on a plain http address, where browsers have none: lengths and checksums remain. */
async function digest(data) {
  if (!globalThis.crypto?.subtle) return undefined;
  const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', data));
  return Array.from(sum, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Run `act` while requests for some addresses get these answers: Pyodide fetches its WebAssembly by itself. Where that
 * cannot be instantiated, as in too little memory, Pyodide would wait for ever. */
export async function instead(answers, act) {
  const { fetch } = self;
  const { instantiateStreaming } = WebAssembly;
  try {
    return await new Promise((resolve, reject) => {
      self.fetch = (request, ...rest) => answers[String(request?.url ?? request)] ?? fetch(request, ...rest);
      WebAssembly.instantiateStreaming = (...source) => {
        const made = instantiateStreaming(...source);
        made.catch(reject);
        return made;
      };
      act().then(resolve, reject);
    });
  } finally {
    Object.assign(self, { fetch });
    Object.assign(WebAssembly, { instantiateStreaming });
  }
}
