// A config.json from a model hub, fetched only when the user asks, from the base address that the user can change.

const LARGEST = 1e6; // bytes; the importer takes no more either
const PATIENCE = 20_000; // milliseconds
const ID = /^[\w.-]+\/[\w.-]+$/;

/** Why there is no configuration: `key` names the sentence, `values` fill it. */
export class HubError extends Error {
  constructor(key, values = {}) {
    super(key);
    Object.assign(this, { key, values });
  }
}

/** The text of `id`'s config.json below `base`. */
export async function configOf(id, base) {
  if (!ID.test(id)) throw new HubError('hub.id', { id });
  const url = address(id, base);
  const response = await ask(url);
  const { status } = response;
  if (status === 401 || status === 403) throw new HubError('hub.gated', { id, status });
  if (status === 404) throw new HubError('hub.missing', { id, url });
  if (!response.ok) throw new HubError('hub.status', { url, status });
  const text = await read(response, url);
  if (!text.trimStart().startsWith('{')) throw new HubError('hub.not_json', { url });
  return text;
}

function address(id, base) {
  let root;
  try {
    root = new URL(base);
  } catch {
    throw new HubError('hub.base', { base });
  }
  if (!['http:', 'https:'].includes(root.protocol)) throw new HubError('hub.base', { base });
  return `${root.origin}${root.pathname.replace(/\/$/, '')}/${id}/resolve/main/config.json`;
}

async function ask(url) {
  try {
    const signal = AbortSignal.timeout(PATIENCE);
    return await fetch(url, { signal, credentials: 'omit', referrerPolicy: 'no-referrer', cache: 'no-cache' });
  } catch (error) {
    if (error.name === 'TimeoutError') throw new HubError('hub.slow', { url });
    // The browser does not tell a page why: no network, no such host, no CORS header, or its own policy.
    throw new HubError(navigator.onLine ? 'hub.blocked' : 'hub.offline', { url });
  }
}

/** The body as text, given up as soon as it is too large. */
async function read(response, url) {
  const pieces = [];
  let size = 0;
  try {
    for await (const piece of response.body) {
      size += piece.length;
      if (size > LARGEST) throw new HubError('hub.large', { url, size: LARGEST.toLocaleString('en') });
      pieces.push(piece);
    }
  } catch (error) {
    throw error instanceof HubError ? error : new HubError('hub.broken', { url });
  }
  return new Blob(pieces).text();
}
