// The two charts: a Bokeh document that Python owns. The page draws it and applies Python's patches to it.
let views = [];
let drawn;
let patching = false;
const unpainted = new Set(); // figures that a patch has changed

/** Draw the document; `roots` says which root stands in which element. */
export async function paint({ documents, items, roots }) {
  for (const view of views) view.remove();
  items[0].roots = Object.fromEntries(Object.entries(roots).map(([element, root]) => [root, element]));
  items[0].root_ids = Object.values(roots);
  const [manager] = await Bokeh.embed.embed_items(documents, items);
  views = [...manager.roots];
  drawn = views[0].model.document;
  for (const view of views) paintAtOnce(view);
  for (const element of Object.keys(roots)) passOver(document.getElementById(element));
}

/** The drawn charts are those that are meant: take away the pictures of them. */
export function uncover() {
  for (const still of document.querySelectorAll('.still')) still.remove();
}

// A finger does not hover: where it taps, the chart shows what it would show to a mouse.
for (const chart of document.querySelectorAll('.chart')) {
  chart.addEventListener('click', (event) => {
    if (event.pointerType !== 'touch') return;
    const { clientX, clientY } = event;
    const mouse = { view: window, pointerType: 'mouse', isPrimary: true, bubbles: true, composed: true };
    event.composedPath()[0].dispatchEvent(new PointerEvent('pointermove', { ...mouse, clientX, clientY }));
  });
}

/** Bokeh puts its canvas among the tab stops, though no key does anything there; the data stand in a table. */
function passOver(element) {
  for (const inner of element.querySelectorAll('*')) {
    if (inner.tabIndex === 0) inner.tabIndex = -1;
    if (inner.shadowRoot) passOver(inner.shadowRoot);
  }
}

/** Apply one patch of Python's to the drawn document, and paint what it has changed: Bokeh itself would do so a frame
 * later, or two. */
export async function patch(patch) {
  patching = true;
  try {
    drawn.apply_json_patch(patch);
    await new Promise((resolve) => setTimeout(resolve)); // glyphs take new data in promises
  } finally {
    patching = false;
  }
  for (const view of unpainted) if (!view.is_destroyed) view.repaint();
  unpainted.clear();
}

function paintAtOnce(view) {
  const later = view.throttled_paint;
  view.throttled_paint = () => (patching ? Promise.resolve(unpainted.add(view)) : later());
}
