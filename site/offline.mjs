// The page's side of the service worker (sw.js), without which it works as well.

/** Keep this build for times without a network; `newer()` is called once another one is there, whole. */
export async function keep(build, newer) {
  const { serviceWorker } = navigator;
  serviceWorker.addEventListener('message', ({ data }) => data.type === 'newer' && newer());
  const registration = await serviceWorker.register(at('sw.js'));
  const tell = (worker) => worker?.postMessage({ build });
  const follow = (worker) => worker?.addEventListener('statechange', () => worker.state === 'installed' && tell(worker));
  tell(registration.waiting);
  follow(registration.installing);
  registration.addEventListener('updatefound', () => follow(registration.installing));
  // Browsers look for another build only when a page is opened.
  document.addEventListener('visibilitychange', () => document.hidden || registration.update().catch(() => {}));
}

/** Remove the service worker of this site and what it keeps. */
export async function leave() {
  const scope = at('.');
  for (const registration of await navigator.serviceWorker.getRegistrations()) {
    if (registration.scope === scope) await registration.unregister();
  }
  for (const name of await caches.keys()) if (name.startsWith(`kv-calculator ${scope} `)) await caches.delete(name);
}

const at = (url) => new URL(url, document.baseURI).href;
