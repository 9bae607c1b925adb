// The tab of the comparison: models in and out, the present one pinned, and the table in the order of any column.

import { Picker } from './picker.mjs';

const find = (id) => document.getElementById(id);
let order = null; // {column, down}: what the user sorted by; Python's order otherwise

/** Start listening; `chosen('compared', ids)` and `chosen('pins', json)` tell Python. */
export function listen(chosen, word) {
  find('compare').addEventListener('click', ({ target }) => {
    const { sort, remove } = target.closest('button')?.dataset ?? {};
    if (sort !== undefined) {
      order = { column: Number(sort), down: order?.column === Number(sort) && !order.down };
      sorted();
    }
    if (remove !== undefined) take(chosen, remove);
  });
  const add = new Picker(
    find('compare_add'),
    (id) => {
      add.show('');
      chosen('compared', [...ids(), id].join(','));
    },
    word,
  );
  find('compare_default').addEventListener('click', () => {
    order = null;
    chosen('compared', find('compared_models').dataset.flagships);
  });
  find('compare_pin').addEventListener('click', () => chosen('pins', find('compared_models').dataset.pinned));
}

/** After Python has written the table: put it into the user's order again. */
export function refresh() {
  if (order && find('compared_models')) sorted();
}

const ids = () => find('compared_models').dataset.compared.split(',').filter(Boolean);

function take(chosen, key) {
  const kept = ids().filter((id) => id !== key);
  if (kept.length < ids().length) return chosen('compared', kept.join(','));
  const pins = JSON.parse(find('compared_models').dataset.pins || '[]');
  chosen('pins', JSON.stringify(pins.filter(([, layers]) => layers !== key)));
}

function sorted() {
  const table = find('compared_models');
  const value = ({ cells }) => cells[order.column].dataset.sort;
  const compare = (a, b) => (order.column ? value(a) - value(b) : value(a).localeCompare(value(b)));
  const rows = [...table.tBodies[0].rows].sort((a, b) => (order.down ? -1 : 1) * compare(a, b));
  table.tBodies[0].append(...rows);
  [...table.tHead.rows[0].cells].forEach((cell, at) => {
    if (at === order.column) cell.setAttribute('aria-sort', order.down ? 'descending' : 'ascending');
    else cell.removeAttribute('aria-sort');
  });
}
