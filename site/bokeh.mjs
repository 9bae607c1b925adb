// BokehJS: its script, and what of its work no chart of this page needs. Each of the three below is a part of every paint
// of a chart, and there are dozens of them in one.

let lightened = false;

/** Wait for bokeh.min.js, which loads beside everything else; ask for it again if it did not come (first-paint.js). */
export async function arrived() {
  if (!window.Bokeh) await load();
  if (!lightened) lighten();
  lightened = true;
}

/** Give up waiting: next time the script is asked for again. */
export function forget() {
  document.getElementById('bokeh').dataset.failed = '';
}

async function load() {
  let script = document.getElementById('bokeh');
  if ('failed' in script.dataset) {
    const again = document.createElement('script');
    // By another name: a browser would wait for the request that it has open.
    Object.assign(again, { id: script.id, src: script.src.replace(/\?.*|$/, `?${performance.now()}`) });
    script.replaceWith(again);
    script = again;
  }
  await new Promise((resolve, reject) => {
    script.addEventListener('load', resolve);
    script.addEventListener('error', () => reject(new Error(`${script.src} did not load`)));
  });
}

function lighten() {
  const { GlyphRendererView } = Bokeh.require('models/renderers/glyph_renderer');
  const { VisualProperties } = Bokeh.require('core/visuals/visual');
  const { InlineStyleSheet } = Bokeh.require('core/dom');

  // A glyph is prepared five times: as it is, selected, beside what is selected, muted, thinned out. Here nothing is
  // selected or muted, and lines have some dozens of points.
  const { build_glyph_view } = GlyphRendererView.prototype;
  const asked = ['set_base', 'set_data', 'set_visuals', 'after_visuals', 'after_lazy_visuals', 'map_data', 'remove'];
  const unseen = Object.fromEntries([...asked, 'children', 'children_views'].map((name) => [name, () => []]));
  GlyphRendererView.prototype.build_glyph_view = function (model) {
    return this.glyph ? { ...unseen, model } : build_glyph_view.call(this, model);
  };

  // Colours and fonts may come from variables of a style sheet: to look, the browser must lay the page out. Here Python
  // says them all.
  VisualProperties.prototype._get_css_value = () => '';

  // A style sheet that says what it said makes the browser look at the page anew, too.
  InlineStyleSheet.prototype._update = function (css) {
    if (this.el.textContent !== css) this.el.textContent = css;
  };
}
