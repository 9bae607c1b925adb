// Runs before the first paint: language and theme of the address, else of the system; whether the address asks for
// another answer than the one that is in the page; and Python, which needs the longest, is told to start.
{
  const root = document.documentElement;
  // A script may fail before anybody waits for it.
  document.addEventListener('error', ({ target }) => (target.dataset.failed = ''), true);
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const system = () => ({
    language: navigator.language.startsWith('zh') ? 'zh' : 'en',
    theme: dark.matches ? 'dark' : 'light',
  });
  const asked = new URLSearchParams(location.search);
  const one = (key, options, other) => (options.includes(asked.get(key)) ? asked.get(key) : other);
  const shown = {
    language: one('lang', ['en', 'zh'], system().language),
    theme: one('theme', ['light', 'dark'], system().theme),
  };
  Object.assign(root, { lang: shown.language }).dataset.theme = shown.theme;
  const { answers, documents, model, ...python } = JSON.parse(document.getElementById('start').textContent);
  const named = asked.get('m') ?? model;
  const ownNumbers = [...asked.keys()].some((key) => !['v', 'm', 'lang', 'theme', 'tab', 'sw'].includes(key));
  const ask = (url) => {
    const response = fetch(url);
    response.catch(() => {}); // boot.mjs tells
    return { url, response };
  };
  let answer;
  if (named === model && !ownNumbers) {
    // Nothing is drawn before the answer has arrived (see "expect"), so the first frame shows it.
    requestAnimationFrame(() => performance.mark('kv-answer'));
  } else {
    root.dataset.kvAnswer = 'waiting'; // never a flash of numbers that the link does not mean
    // The build has written the answer of every model of the catalogue.
    if (!ownNumbers && /^[\w.-]+$/.test(named)) answer = ask(`${answers}${named}-${shown.language}.json`);
  }

  // The charts as the build has them: asked for before the files of Python, which are a hundred times as long.
  const url = documents?.[`${shown.language}-${shown.theme}`];
  const charts = url && ask(url);

  /** A worker that is starting: `{ worker, heard }`, where `heard` keeps what it says until somebody listens. */
  const begin = (start) => {
    const worker = new Worker(python.worker, { type: 'module' });
    const heard = [];
    worker.onmessage = ({ data }) => heard.push(data);
    worker.onerror = ({ message }) => heard.push({ type: 'error', reason: message || python.worker });
    worker.postMessage({ type: 'start', base: document.baseURI, system: system(), shown, ...python, ...start });
    return { worker, heard };
  };
  let first;
  try {
    first = begin({ rung: python.resume ? 'resume' : 'plain', query: location.search.slice(1) });
  } catch {} // python.mjs meets the same and tells
  window.kvStart = { begin, first, answer, charts, system, dark };
}
