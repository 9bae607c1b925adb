// The layer strip: a slider without a look of its own lies over the cells and says what one layer stores.

const slider = document.getElementById('layer');
const said = document.getElementById('layer_said');
let word;

/** Start listening; `words(key, values)` is a sentence in the present language. */
export function listen(words) {
  word = words;
  slider.addEventListener('input', point);
  slider.addEventListener('focus', point);
  slider.addEventListener('pointermove', ({ offsetX }) => {
    if (slider.matches(':active')) return; // the browser itself moves it
    slider.value = Math.floor((offsetX / slider.clientWidth) * (Number(slider.max) + 1));
    point();
  });
  for (const end of ['blur', 'pointerleave']) {
    slider.addEventListener(end, () => {
      said.hidden = true;
      said.textContent = '';
    });
  }
}

/** The cells are new: as many steps as there are layers. */
export function refresh() {
  const layers = [...document.querySelectorAll('#strip i')].reduce((sum, run) => sum + Number(run.dataset.layers), 0);
  slider.max = layers - 1;
  describe();
}

function point() {
  describe();
  said.textContent = slider.getAttribute('aria-valuetext');
  said.hidden = false;
  said.style.setProperty('--at', (Number(slider.value) + 0.5) / (Number(slider.max) + 1));
}

function describe() {
  let layer = Number(slider.value);
  const run = [...document.querySelectorAll('#strip i')].find(({ dataset }) => (layer -= dataset.layers) < 0);
  const group = document.querySelectorAll('#strip li')[run.dataset.group];
  slider.setAttribute('aria-valuetext', word('shell.layer', { layer: slider.value, what: group.dataset.stores }));
}
