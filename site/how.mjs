// "how?" beside a number: a dialog with its formula, which Python writes when it is asked for.
import { copy } from './copy.mjs';

const dialog = document.getElementById('how_dialog');
const content = document.getElementById('how');

/** Start listening; `ask('how', quantity)` asks Python, whose answer fills the dialog like any other piece. */
export function listen(ask, word) {
  dialog.addEventListener('close', () => content.replaceChildren()); // it may be in another language by the next time
  document.addEventListener('click', async ({ target }) => {
    const asked = target.closest('[data-how]');
    if (asked) {
      content.shown = undefined;
      content.textContent = word('status.loading');
      dialog.showModal();
      ask('how', asked.dataset.how);
    }
    const taken = target.closest('[data-copy]');
    if (taken) taken.textContent = word((await copy(taken.dataset.copy)) ? 'shell.copied_text' : 'shell.copy_failed');
  });
}
