// Runs before the first paint: language and theme of the address, else of the system, and whether the address asks for
// another answer than the one that is in the page. Everything else waits.
{
  const root = document.documentElement;
  const asked = new URLSearchParams(location.search);
  const one = (key, options, other) => (options.includes(asked.get(key)) ? asked.get(key) : other);
  root.dataset.theme = one('theme', ['light', 'dark'], matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  root.lang = one('lang', ['en', 'zh'], navigator.language.startsWith('zh') ? 'zh' : 'en');
  // Never a flash of numbers that the link does not mean.
  if ([...asked.keys()].some((key) => !['v', 'lang', 'theme', 'tab', 'sw'].includes(key))) root.dataset.kvAnswer = 'waiting';
  // Nothing is drawn before the answer has arrived (see "expect"), so the first frame shows it.
  else requestAnimationFrame(() => performance.mark('kv-answer'));
}
