// The page of the stock flow: shows nothing until Python has answered, then the answer and the charts at once.
import { paint } from './charts.mjs';

const root = document.documentElement;
const worker = new Worker('worker.mjs', { type: 'module' });
worker.onerror = (event) => fail(event.message || 'worker.mjs did not load');
worker.onmessage = async ({ data: { charts, page, error } }) => {
  if (error) return fail(error);
  document.getElementById('headline').innerHTML = JSON.parse(page).pieces.headline;
  performance.mark('kv-answer');
  await paint(JSON.parse(charts));
  performance.mark('kv-painted');
  performance.mark('kv-live'); // Python is there already
  root.dataset.kvState = 'live';
};

function fail(reason) {
  document.getElementById('status').textContent = reason;
  root.dataset.kvState = 'error';
}
