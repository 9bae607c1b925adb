// The worker of the stock flow, by the guides of Pyodide and micropip.
import { loadPyodide } from './pyodide/pyodide.mjs';

const at = (path) => new URL(path, import.meta.url).href;

try {
  const install = fetch(at('install.json')).then((response) => response.json());
  const pyodide = await loadPyodide();
  await pyodide.loadPackage('micropip');
  const { by_name, addresses } = await install;
  await pyodide.pyimport('micropip').install.callKwargs([...by_name, ...addresses.map(at)], { deps: false });
  const { Session } = pyodide.runPython('from calculator.app import browser; browser');
  const session = Session('', '{"language": "en", "theme": "light"}');
  self.postMessage({ charts: session.painted(), page: session.page() });
} catch (error) {
  self.postMessage({ error: String(error.message ?? error) });
}
