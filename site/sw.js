// The service worker: the page without a network, and its files without asking whether they changed. The page does all
// it does without it. The build writes `BUILD`, the name of what follows, above this line, and offline-<BUILD>.json, the
// list of the files that a visit needs.
//
// Each build has a cache of its own, filled completely or not at all. The browser lets a worker wait until no page has
// the one before, so a page keeps the files that it was built with for as long as it is open.

const SCOPE = registration.scope;
const PREFIX = `kv-calculator ${SCOPE} `; // another copy of the site on this origin has another scope
const CACHE = PREFIX + BUILD;
const HASHED = /-[0-9a-f]{10}[./]/; // a name that says its content
const PATIENCE = 5000; // milliseconds that the network has for the page

const isPage = (url) => [SCOPE, `${SCOPE}index.html`].includes(url.replace(/[?#].*/, ''));
const listOf = (build) => `offline-${build}.json`;
const kept = (url) => caches.match(url, { cacheName: CACHE });

// ---- a build arrives and an older one leaves -------------------------------------------------------------------------

self.addEventListener('install', (event) => {
  // Where browsers can, they answer without asking the worker: a start is not slower than without it.
  event.addRoutes?.({
    condition: { urlPattern: new URLPattern({ pathname: '*-*.*', baseURL: SCOPE }) },
    source: { cacheName: CACHE },
  });
  event.waitUntil(fill());
});

async function fill() {
  try {
    const cache = await caches.open(CACHE);
    const list = await fetch(listOf(BUILD), { cache: 'no-cache' });
    for (const [url, sum] of Object.entries(await list.json())) await cache.put(url, await checked(url, sum));
    const page = await fetch(SCOPE, { cache: 'no-cache' });
    const found = page.redirected ? undefined : buildOf(await page.clone().text()); // browsers refuse redirected pages
    if (found !== BUILD) throw new Error(`${SCOPE} is not the page of build ${BUILD}`);
    await cache.put(SCOPE, page);
  } catch (error) {
    await caches.delete(CACHE);
    throw error;
  }
}

/** A file as it was built: the one that the page has just loaded, unless that one is damaged. */
async function checked(url, sum) {
  for (const cache of ['force-cache', 'reload']) {
    const response = await fetch(url, { cache });
    if (response.ok && (await digest(response.clone())) === sum) return response;
  }
  throw new Error(`${url} is not the file of build ${BUILD}`);
}

async function digest(response) {
  const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', await response.arrayBuffer()));
  return Array.from(sum, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

self.addEventListener('activate', (event) => event.waitUntil(takeOver()));

async function takeOver() {
  const names = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== CACHE);
  await Promise.all(names.map((name) => caches.delete(name)));
  await registration.navigationPreload?.enable();
  await clients.claim();
}

/** A page says which build it is, as this worker waits: of this one, it need not wait for the page itself. */
self.addEventListener('message', async ({ data, source }) => {
  if (data.build !== BUILD) return source.postMessage({ type: 'newer' });
  const open = await clients.matchAll({ type: 'window', includeUncontrolled: true });
  if (open.filter(({ url }) => isPage(url)).length === 1) self.skipWaiting();
});

// ---- requests ----------------------------------------------------------------------------------------------------------

self.addEventListener('fetch', (event) => {
  const { method, mode, url } = event.request;
  if (method !== 'GET' || !url.startsWith(SCOPE)) return;
  if (mode === 'navigate' && isPage(url)) {
    if (new URL(url).searchParams.get('sw') !== 'off') event.respondWith(page(event));
  } else if (HASHED.test(url.slice(SCOPE.length))) {
    event.respondWith(kept(url).then((found) => found ?? fetch(event.request)));
  }
});

/** The network's page; the kept one where the network has none that can be used. */
async function page(event) {
  const asked = fromNetwork(event);
  const usable = asked.then(async (fresh) => ((await whole(fresh)) ? fresh : undefined)).catch(() => {});
  event.waitUntil(usable);
  const fresh = await Promise.race([usable, new Promise((resolve) => setTimeout(resolve, PATIENCE))]);
  return fresh ?? (await kept(SCOPE)) ?? asked;
}

async function fromNetwork({ preloadResponse, request }) {
  return (await preloadResponse) ?? fetch(request);
}

/** Whether a page can be used: one of another build only with all its files, for a site may be read as it is replaced. */
async function whole(fresh) {
  if (!fresh.ok) return fresh.status < 500;
  const mark = ['ETag', 'Last-Modified'].find((name) => fresh.headers.has(name));
  if (mark && fresh.headers.get(mark) === (await kept(SCOPE))?.headers.get(mark)) return true; // without reading it
  const build = buildOf(await fresh.clone().text());
  if (!build || build === BUILD) return true;
  const list = await fetch(listOf(build), { cache: 'no-cache' });
  const files = await Promise.all(Object.keys(await list.json()).map((url) => fetch(url, { method: 'HEAD' })));
  return files.every(({ status }) => status !== 404);
}

function buildOf(page) {
  return page.match(/data-kv-build="(\w+)"/)?.[1];
}
