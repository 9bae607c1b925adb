// The tab of one's own model: a config.json pasted, dropped, opened or fetched, and numbers replaced in the table.
import * as editor from './editor.mjs';
import { configOf } from './hub.mjs';

const HUB = 'https://huggingface.co'; // where the box of the base address starts
const LARGEST = 1e6; // bytes of a file that is read at all
const find = (id) => document.getElementById(id);
const said = {}; // what stands beside the hub's button: a key and its values, said anew in another language
let change;
let choose;
let word;

/** Start listening; `changed(field, text)` tells Python what is typed, `chosen(field, text)` what comes from elsewhere;
 * `ahead(field)` tells whether the user has changed the field since Python's answer; `words(key, values)` is a sentence
 * of the present language. */
export function listen(changed, chosen, ahead, words) {
  [change, choose, word] = [changed, chosen, words];
  editor.listen(changed, ahead, words);
  find('hub_base').value = HUB;
  const text = find('config_text');
  text.addEventListener('input', () => soon(() => change('config', text.value.trim())));
  find('config_open').addEventListener('click', () => find('config_file').click());
  find('config_file').addEventListener('change', ({ target }) => open(target.files[0]));
  const drop = find('config_drop');
  for (const type of ['dragenter', 'dragover', 'dragleave', 'drop']) {
    drop.addEventListener(type, (event) => {
      event.preventDefault();
      drop.classList.toggle('over', type === 'dragenter' || type === 'dragover');
      if (type === 'drop') open(event.dataTransfer.files[0]);
    });
  }
  find('hub').addEventListener('submit', (event) => {
    event.preventDefault();
    fetchIt();
  });
  find('own_name').addEventListener('change', ({ target }) => change('own_name', target.value));
  find('own').addEventListener('change', ({ target }) => target.dataset.place && replace(target));
}

/** Show what Python says of it: a message for each field, and the layers for the editor. */
export function show(own) {
  if (!own) return;
  for (const [field, sentence] of Object.entries(own.messages)) {
    find(`message-${field}`).textContent = sentence;
  }
  find('config_text').setAttribute('aria-invalid', own.messages.config !== '');
  // A refused model can still be described by hand.
  find('by_hand').hidden = own.messages.config === '';
  if (document.activeElement !== find('own_name')) find('own_name').value = own.name;
  editor.know(own.layers);
}

/** Say anew, in the present language, what stands beside the hub's button. */
export function reword() {
  if (said.key) tell(said.key, said.values);
  editor.reword();
}

function take(text, name = '') {
  choose('config', text.trim());
  if (name) choose('own_name', name);
}

async function open(file) {
  if (!file) return;
  find('config_file').value = '';
  if (file.size > LARGEST) return tell('hub.large', { url: file.name, size: LARGEST.toLocaleString('en') });
  tell();
  find('config_text').value = await file.text();
  take(find('config_text').value);
}

async function fetchIt() {
  const id = find('hub_id').value.trim();
  const button = find('hub_fetch');
  button.disabled = true;
  tell('hub.asking', { id });
  try {
    const text = await configOf(id, find('hub_base').value.trim());
    find('config_text').value = text;
    take(text, id.split('/')[1]);
    tell('hub.taken', { id });
  } catch (error) {
    if (!error.key) throw error;
    tell(error.key, error.values);
  } finally {
    button.disabled = false;
  }
}

function tell(key = '', values = {}) {
  Object.assign(said, { key, values });
  find('hub_message').textContent = key && word(key, values);
}

/** Put the number of one place among those that are replaced already. */
function replace({ dataset: { place }, value, defaultValue }) {
  if (value === defaultValue) return;
  const present = find('own_numbers').dataset.overrides;
  const numbers = new Map(present.split(',').filter(Boolean).map((one) => one.split('=')));
  numbers.set(place, value.replaceAll(/[\s,_]/g, ''));
  change('overrides', [...numbers].map(([where, number]) => `${where}=${number}`).join(','));
}

let timer;
function soon(act) {
  clearTimeout(timer);
  timer = setTimeout(act, 300);
}
