// Python, as the page sees it: a worker behind a ladder of ways to start. One message is with it at a time; what
// changes meanwhile is sent together. When a worker ends, another one goes on where it was.

const PATIENCE = 60_000; // milliseconds without a word, after which a start or an answer is given up
const RESTARTS = 3; // of a Python that was live, before it is left alone

export class Python {
  /** `rungs` are the ways to start; `begin(start)` makes a worker (first-paint.js), `first` is one that it has made
   * already. `address()` says what the page is at, `missing()` which file its charts wait for, if any, `system()` which
   * language and theme the browser prefers. `hear` has a function for each message of the worker, and for `ready`, which
   * waits for the charts, `fallback`, `restart` and `failed`, which get a reason. */
  constructor(rungs, { begin, first, system }, address, missing, hear) {
    Object.assign(this, { rungs, begin, first, system, address, missing, hear });
    this.waiting = new Map(); // field -> text, in the order of the last change of each
    this.sent = new Map(); // the changes that are with Python
    this.asked = new Map(); // id -> resolvers of result()
    this.ids = 0;
    this.wasLive = false;
  }

  start() {
    this.restarts = 0;
    this.climb(0);
  }

  change(field, text) {
    this.waiting.delete(field);
    this.waiting.set(field, text);
    this.send();
  }

  /** Drop the changes that are not with Python yet. */
  forget() {
    this.waiting.clear();
  }

  /** Whether the user has changed this field since the last answer. */
  ahead(field) {
    return this.waiting.has(field) || this.sent.has(field);
  }

  /** The estimate's JSON, once Python has answered every change made so far. */
  result() {
    return new Promise((resolve, reject) => {
      if (this.failure) throw new Error(this.failure);
      this.asked.set(this.ids++, { resolve, reject });
      this.send();
    });
  }

  // ---- one message at a time ----------------------------------------------------------------------------------------

  send() {
    if (!this.live || this.busy) return;
    if (this.waiting.size) {
      this.sent = this.waiting;
      this.waiting = new Map();
      this.post({ type: 'change', changes: Object.fromEntries(this.sent), system: this.system() });
    } else if (this.asked.size) {
      this.post({ type: 'result', id: this.asked.keys().next().value });
    }
  }

  post(message) {
    this.expect(message.type);
    this.worker.postMessage(message);
  }

  expect(step) {
    Object.assign(this, { step, busy: true });
    this.watch();
  }

  async handle({ type, ...content }) {
    if (type === 'error') return this.fail(content);
    if (type === 'held') return this.mourn(content.lock);
    if (type === 'progress') this.step = content.file ?? content.step;
    if (type === 'result') {
      this.asked.get(content.id)?.resolve(content.result);
      this.asked.delete(content.id);
    }
    if (type === 'state') this.sent = new Map();
    if (type === 'live') {
      const { worker } = this;
      await this.hear.ready();
      if (worker !== this.worker) return;
      this.live = this.wasLive = true;
    }
    if (type === 'live' || type === 'result' || (type === 'state' && this.live)) this.busy = false;
    this.watch();
    this.send(); // Python goes on while the page draws
    await this.hear[type]?.(content);
  }

  // ---- the ladder ---------------------------------------------------------------------------------------------------

  climb(rung) {
    this.end();
    Object.assign(this, { rung, failure: undefined });
    this.waiting = new Map([...this.sent, ...this.waiting]);
    this.sent = new Map();
    try {
      this.listen(this.first ?? this.begin({ rung: this.rungs[rung], query: this.address(), again: this.wasLive }));
    } catch (error) {
      this.fail({ reason: error.message });
    }
  }

  listen({ worker, heard }) {
    this.worker = worker;
    this.first = undefined;
    this.expect('worker.mjs');
    let last = Promise.resolve();
    const hear = (message) => {
      last = last.then(() => worker === this.worker && this.handle(message)).catch((error) => {
        if (worker !== this.worker) return;
        console.error(error);
        this.fail({ reason: error.message });
      });
    };
    heard.forEach(hear);
    worker.onmessage = ({ data }) => hear(data);
    worker.onerror = ({ message }) => hear({ type: 'error', reason: message || 'worker.mjs' });
  }

  /** Give up a start or an answer that says nothing for too long, with the name of what it was at. */
  watch() {
    clearTimeout(this.watchdog);
    if (!this.busy) return;
    this.watchdog = setTimeout(() => {
      const reason = `${this.missing() ?? this.step}: no word for ${PATIENCE / 1000} s`;
      if (this.live) this.revive(reason);
      else this.fail({ reason });
    }, PATIENCE);
  }

  /** Where browsers have locks, one that the worker holds tells at once when the worker ends. */
  mourn(lock) {
    const { worker } = this;
    navigator.locks.request(lock, () => worker === this.worker && this.revive('the worker ended')).catch(() => {});
  }

  /** The worker ended by no fault of the app's: the same way up again, with everything that was chosen. */
  revive(reason) {
    if (!this.live || ++this.restarts > RESTARTS) return this.fail({ reason });
    this.hear.restart({ reason });
    this.climb(this.rung);
  }

  /** One rung down; below the last one the page is told, and stays as it is. */
  fail({ reason, detail = reason }) {
    if (this.rung + 1 < this.rungs.length) {
      this.hear.fallback({ reason });
      this.climb(this.rung + 1);
      return;
    }
    this.end();
    this.failure = detail;
    for (const { reject } of this.asked.values()) reject(new Error(detail));
    this.asked.clear();
    this.sent.clear();
    this.hear.failed({ reason, wasLive: this.wasLive });
  }

  end() {
    clearTimeout(this.watchdog);
    this.worker?.terminate();
    this.worker = undefined;
    this.live = this.busy = false;
  }
}
