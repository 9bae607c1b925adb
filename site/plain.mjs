// The second way to start: Python from its archives; the app is built here and now. Slower, but needs less to be right.
import { instead } from './arrivals.mjs';

/** Python that can import the app. */
export async function plain(site, arrivals, step) {
  arrivals.expect(site.packages, site.stdlib, site.wasm);
  const packages = arrivals.bytes(site.packages);
  const stdlib = arrivals.open(site.stdlib);
  const wasm = arrivals.open(site.wasm);
  const whole = Promise.all([packages, stdlib.then((part) => part.whole), wasm.then((part) => part.whole)]);
  whole.catch(() => {});
  const { loadPyodide } = await arrivals.module(`${site.runtime}pyodide.mjs`);
  const answer = (part, type) => part.then(({ stream }) => new Response(stream, { headers: { 'Content-Type': type } }));
  const started = instead(
    { [site.stdlib.url]: answer(stdlib, 'application/zip'), [site.wasm.url]: answer(wasm, 'application/wasm') },
    () => loadPyodide({ indexURL: site.runtime, stdLibURL: site.stdlib.url }),
  );
  // Without its WebAssembly Pyodide waits for ever.
  const [[archive], python] = await Promise.all([whole, started]);
  step('start');
  python.unpackArchive(archive, 'zip', { extractDir: python.runPython('import site; site.getsitepackages()[0]') });
  return python;
}
