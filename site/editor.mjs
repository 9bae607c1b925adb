// The layer-group editor: patterns of runs of equal layers, each with its caches and their sizes. Its text goes to
// Python, which checks it; kinds, sizes and bounds come from the cache kinds themselves.

const find = (id) => document.getElementById(id);
let change;
let ahead;
let word;
let kinds;
let present = []; // the layers of the page's model, to start from
let blocks = null; // those in the editor, once someone has begun
let timer; // until they are sent

/** Start listening; what is edited is sent as the field `layers`. */
export function listen(changed, isAhead, words) {
  [change, ahead, word] = [changed, isAhead, words];
  kinds = JSON.parse(find('site').textContent).kinds;
  find('editor_start').addEventListener('click', () => {
    blocks = structuredClone(present);
    draw();
    find('editor').querySelector('input').focus();
  });
  find('by_hand').addEventListener('click', () => {
    find('editor_start').scrollIntoView({ block: 'center' });
    find('editor_start').focus();
  });
  const editor = find('editor');
  editor.addEventListener('input', ({ target }) => {
    if (target.type === 'number') set(target.dataset.path, Number(target.value));
  });
  editor.addEventListener('change', ({ target }) => {
    if (target.tagName === 'SELECT') choose(target.dataset.path, target.value);
  });
  editor.addEventListener('click', ({ target }) => {
    const button = target.closest('[data-act]');
    if (button) act(button.dataset.act, button.dataset.path);
  });
  find('layers_text').addEventListener('change', ({ target }) => change('layers', target.value));
}

/** Take note of the model's layers. */
export function know(layers) {
  present = layers;
  // What Python made of a text that was typed is what the rows show next, unless they say something newer.
  if (blocks && !timer && !ahead('layers') && !find('editor').contains(document.activeElement)) {
    blocks = structuredClone(layers);
    draw();
  }
}

/** Draw anew, in the present language. */
export function reword() {
  if (blocks) draw();
}

// ---- changes ------------------------------------------------------------------------------------------------------

/** What a path such as `0.rows.1.caches.0` leads to, and the list or object that holds it. */
function follow(path) {
  const keys = path.split('.');
  const last = keys.pop();
  return [keys.reduce((place, key) => place[key], blocks), last];
}

function set(path, value) {
  const [place, key] = follow(path);
  place[key] = value;
  send();
}

function choose(path, kind) {
  const [place, key] = follow(path);
  const { sizes } = place[key];
  place[key] = fresh(kind, sizes);
  draw();
  send();
  find('editor').querySelector(`select[data-path="${path}"]`).focus();
}

const fresh = (kind, old = {}) => ({
  kind,
  sizes: Object.fromEntries(kinds[kind].map(({ name, start }) => [name, old[name] ?? start])),
});
const row = () => ({ layers: 1, caches: [fresh('full_attention')] });

const acts = {
  block: () => blocks.push({ times: 1, rows: [row()] }),
  row: (place, key) => place[key].push(row()),
  cache: (place, key) => place[key].push(fresh('full_attention')),
  remove: (place, key) => place.splice(key, 1),
};

function act(name, path) {
  acts[name](...(path ? follow(path) : []));
  blocks = blocks.filter(({ rows }) => rows.length);
  draw();
  send();
}

function send() {
  find('layers_text').value = text();
  clearTimeout(timer);
  timer = setTimeout(() => {
    timer = undefined;
    change('layers', text());
  }, 250);
}

/** The layers in the words of calculator/layer_text.py. */
function text() {
  const cache = ({ kind, sizes }) => `${kind}(${Object.entries(sizes).map(([name, size]) => `${name}=${size}`).join(',')})`;
  const many = (count) => (count === 1 ? '' : `${count}*`);
  const layers = ({ layers: count, caches }) => many(count) + (caches.map(cache).join('/') || 'none');
  const pattern = (rows) => rows.map(layers).join('+');
  return blocks.map(({ times, rows }) => (times === 1 ? pattern(rows) : `${times}*(${pattern(rows)})`)).join('+');
}

// ---- drawing ------------------------------------------------------------------------------------------------------

function draw() {
  find('layers_text').value = text();
  find('editor').replaceChildren(
    ...blocks.map((block, at) => drawBlock(block, String(at))),
    button('block', '', 'own.add_block'),
  );
}

function drawBlock({ times, rows }, path) {
  const place = element('fieldset', {}, element('legend', {}, number(`${path}.times`, times, 1, 1024, word('own.times'))));
  place.append(...rows.map((one, at) => drawRow(one, `${path}.rows.${at}`)), button('row', `${path}.rows`, 'own.add_row'));
  return place;
}

function drawRow({ layers, caches }, path) {
  return element(
    'div',
    { className: 'run' },
    number(`${path}.layers`, layers, 1, 1024, word('config.layers')),
    ...caches.map((cache, at) => drawCache(cache, `${path}.caches.${at}`)),
    button('cache', `${path}.caches`, 'own.add_cache'),
    button('remove', path, 'own.remove_row'),
  );
}

function drawCache({ kind, sizes }, path) {
  const options = Object.keys(kinds).map((name) =>
    element('option', { value: name, selected: name === kind }, word(`kind.${name}`)));
  const select = element('select', { ariaLabel: word('layers.kind') }, ...options);
  select.dataset.path = path;
  const fields = kinds[kind].map(({ name, lowest, highest }) =>
    number(`${path}.sizes.${name}`, sizes[name], lowest, highest, name));
  return element('div', { className: 'cache' }, select, ...fields, button('remove', path, 'own.remove_cache'));
}

function number(path, value, min, max, name) {
  const box = element('input', { type: 'number', value, min, max, step: 1 });
  box.dataset.path = path;
  return element('label', {}, element('span', {}, name), box);
}

function button(name, path, key) {
  const made = element('button', { type: 'button', className: 'plain' }, word(key));
  Object.assign(made.dataset, { act: name, path });
  return made;
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
