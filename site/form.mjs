// The controls: native inputs, linked to each other here and to Python by field name.
// A slider and its box never wait for Python; what Python answers is shown unless the user is already further.

import { Picker } from './picker.mjs';

const controls = new Map();

/** Start listening. `changed(field, text)` hears of every move and keystroke, `chosen(field, text)` of a model;
 * `ahead(field)` tells whether the user has changed the field since Python's answer; `word(key)` is a sentence in the
 * present language. */
export function listen(changed, chosen, ahead, word) {
  for (const element of document.querySelectorAll('[data-kv-control]')) {
    const control = element.matches('.picker')
      ? new ModelControl(element, chosen, ahead, word)
      : new Control(element, changed, ahead, word);
    controls.set(control.field, control);
  }
  for (const form of document.forms) form.addEventListener('submit', (event) => event.preventDefault());
}

/** Show what Python says of every control. */
export function show(form) {
  for (const [field, shown] of Object.entries(form)) controls.get(field).show(shown);
}

/** The scenario is about to be another one: a box in use no longer keeps what was typed. */
export function leave() {
  if (document.activeElement.matches('input[type=text]')) document.activeElement.blur();
}

/** Say slider values anew, in the present language. */
export function reword() {
  for (const control of controls.values()) control.describe();
}

/** The model: a picker in place of a box. */
class ModelControl {
  constructor(element, chosen, ahead, word) {
    this.field = element.dataset.kvControl;
    this.message = element.querySelector('.message');
    this.ahead = ahead;
    this.picker = new Picker(element, (id) => chosen(this.field, id), word);
  }

  show({ text, message }) {
    this.message.textContent = message;
    if (!this.ahead(this.field)) this.picker.show(text);
  }

  describe() {}
}

class Control {
  constructor(element, changed, ahead, word) {
    this.element = element;
    this.field = element.dataset.kvControl;
    this.box = element.querySelector('input[type=text], select');
    this.slider = element.querySelector('input[type=range]');
    this.message = element.querySelector('.message');
    this.stops = this.slider ? JSON.parse(this.slider.dataset.stops) : [];
    this.ahead = ahead;
    this.word = word;
    this.text = this.box.value;
    this.box.addEventListener('input', () => changed(this.field, this.box.value));
    this.box.addEventListener('blur', () => this.settle());
    this.box.addEventListener('keydown', ({ key }) => key === 'Enter' && this.settle());
    this.slider?.addEventListener('input', () => {
      const value = this.stops[this.slider.value];
      this.box.value = typeof value === 'number' ? value.toLocaleString('en') : value;
      this.describe();
      changed(this.field, String(value));
    });
    this.describe();
  }

  show({ text, position, most, hidden, message, options }) {
    this.element.hidden = hidden;
    if (options) for (const option of this.box.options) option.hidden = !options.includes(option.value);
    this.message.textContent = message;
    this.box.toggleAttribute('aria-invalid', message !== '');
    if (message !== '') this.box.setAttribute('aria-invalid', 'true');
    this.text = text;
    if (this.ahead(this.field)) return;
    if (this.slider) {
      this.slider.max = most;
      this.slider.value = position;
    }
    // A box in use keeps what was typed, as it was typed.
    if (document.activeElement !== this.box || this.box.tagName === 'SELECT') this.settle();
    this.describe();
  }

  /** Write the text as Python understood it: `128Ki` becomes `131,072`. */
  settle() {
    if (this.ahead(this.field)) return;
    this.box.value = this.text;
    // A list says what it has no option for, such as "custom, from X": any option can then be chosen.
    if (this.box.tagName === 'SELECT' && this.box.value !== this.text) {
      this.box.options[0].text = this.text;
      this.box.value = '';
    }
  }

  /** The slider's value for a screen reader: the number with its unit, or the option's words. */
  describe() {
    if (!this.slider) return;
    this.slider.style.setProperty('--at', this.slider.value / (this.slider.max || 1));
    const shown = this.box.tagName === 'SELECT' ? this.box.selectedOptions[0].text : this.box.value;
    const unit = this.slider.dataset.unit ? ` ${this.word(this.slider.dataset.unit)}` : '';
    this.slider.setAttribute('aria-valuetext', shown + unit);
  }
}
