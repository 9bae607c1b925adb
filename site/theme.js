// Runs before the first paint: language and theme of the address, else of the system. Everything else waits.
{
  const asked = new URLSearchParams(location.search);
  const one = (key, options, other) => (options.includes(asked.get(key)) ? asked.get(key) : other);
  document.documentElement.dataset.theme = one('theme', ['light', 'dark'], matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  document.documentElement.lang = one('lang', ['en', 'zh'], navigator.language.startsWith('zh') ? 'zh' : 'en');
}
