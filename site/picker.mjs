// A box that finds a model by name, maker, kind or size: `qwen`, `mla`, `70b`, `< 100` (KiB per token).

const models = JSON.parse(document.getElementById('site').textContent).models;
const names = new Map(models.map(({ id, name }) => [id, name]));

/** The name of a catalogue model; any other text as it is. */
export const nameOf = (text) => names.get(text) ?? text;

export class Picker {
  /** `element` holds a combobox and its listbox; `chosen(id)` hears of a choice; `word(key)` is a sentence. */
  constructor(element, chosen, word) {
    Object.assign(this, { chosen, word, text: '' });
    this.box = element.querySelector('[role=combobox]');
    this.list = element.querySelector('[role=listbox]');
    this.box.addEventListener('click', () => this.open());
    this.box.addEventListener('input', () => this.open(this.box.value));
    this.box.addEventListener('blur', () => this.close());
    this.box.addEventListener('keydown', (event) => this.key(event));
    // A press on an option must not take the focus: the box would close before the click.
    this.list.addEventListener('mousedown', (event) => event.preventDefault());
    this.list.addEventListener('click', ({ target }) => {
      const option = target.closest('[role=option]');
      if (option) this.choose(option);
    });
  }

  /** Show `text` while nobody is choosing. */
  show(text) {
    this.text = nameOf(text);
    if (this.list.hidden) this.box.value = this.text;
  }

  /** Open the list with the models that fit `wanted`. */
  open(wanted = '') {
    if (!wanted) this.box.select();
    const found = matching(wanted, this.word);
    const groups = Map.groupBy(found, ({ maker }) => maker);
    this.list.replaceChildren(...[...groups].map(([maker, group]) => this.group(maker, group)));
    if (!found.length) this.list.append(element('p', {}, this.word('shell.no_model')));
    this.options = [...this.list.querySelectorAll('[role=option]')];
    this.list.hidden = false;
    this.box.setAttribute('aria-expanded', 'true');
    this.activate(wanted ? 0 : -1);
  }

  close() {
    this.list.hidden = true;
    this.list.replaceChildren(); // written anew when it opens, in the language of then
    this.box.setAttribute('aria-expanded', 'false');
    this.box.removeAttribute('aria-activedescendant');
    this.box.value = this.text;
  }

  key(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
    const { key } = event;
    if (key in steps) {
      event.preventDefault();
      if (this.list.hidden) this.open();
      this.activate(Math.min(Math.max(this.active + steps[key], 0), this.options.length - 1));
    } else if (key === 'Enter') {
      event.preventDefault();
      if (!this.list.hidden && this.options[this.active]) this.choose(this.options[this.active]);
    } else if (key === 'Escape' && !this.list.hidden) {
      event.stopPropagation();
      this.close();
    }
  }

  activate(at) {
    this.options[this.active]?.setAttribute('aria-selected', 'false');
    this.active = at;
    const option = this.options[at];
    if (!option) return this.box.removeAttribute('aria-activedescendant');
    option.setAttribute('aria-selected', 'true');
    option.scrollIntoView({ block: 'nearest' });
    this.box.setAttribute('aria-activedescendant', option.id);
  }

  choose(option) {
    this.text = option.dataset.label;
    this.close();
    this.chosen(option.dataset.id);
  }

  group(maker, group) {
    const made = element('div', { role: 'group', ariaLabel: maker }, element('p', { className: 'maker', ariaHidden: 'true' }, maker));
    made.append(...group.map((model) => this.option(model)));
    return made;
  }

  option({ id, name, kinds, layers, rate }) {
    const detail = [...kinds.map((kind) => this.word(`kind.${kind}`)), `${layers} ${this.word('unit.layers')}`, perToken(rate)];
    const made = element('div', { role: 'option', id: `${this.list.id}-${id}`, ariaSelected: 'false' }, name, element('small', {}, detail.join(' · ')));
    Object.assign(made.dataset, { id, label: name });
    return made;
  }
}

const perToken = (rate) => `${+(rate / 1024).toPrecision(3)} KiB/token`;

/** The models in which every word of `wanted` is found; `< 100` and `> 100` are bounds of the KiB per token. */
function matching(wanted, word) {
  const text = wanted.trim().toLowerCase();
  if (names.has(text)) return models.filter(({ id }) => id === text);
  const bounds = [...text.matchAll(/([<>])\s*(\d+(?:\.\d+)?)/g)];
  const words = text.replaceAll(/[<>]\s*[\d.]*/g, ' ').split(/\s+/);
  return models.filter(({ id, name, maker, hub_id: hub, kinds, rate }) => {
    const about = [id, name, maker, hub, ...kinds, ...kinds.map((kind) => word(`kind.${kind}`))].join(' ').toLowerCase();
    const fits = ([, sign, size]) => (sign === '<' ? rate < size * 1024 : rate > size * 1024);
    return words.every((one) => about.includes(one)) && bounds.every(fits);
  });
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
