// timers and timers/promises.
import { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate, Timeout, Immediate } from './loop.mjs';

const aborted = (signal) => Object.assign(new Error('The operation was aborted', { cause: signal.reason }), { name: 'AbortError', code: 'ABORT_ERR' });
const promised = (set, clear) => (signal, ref) => new Promise((resolve, reject) => {
  if (signal?.aborted) return reject(aborted(signal));
  const stop = () => { clear(timer); reject(aborted(signal)); };
  const timer = set(() => { signal?.removeEventListener('abort', stop); resolve(); });
  if (ref === false) timer.unref();
  signal?.addEventListener('abort', stop, { once: true });
});
const wait = async (ms, value, { signal, ref } = {}) => { await promised((f) => setTimeout(f, ms), clearTimeout)(signal, ref); return value; };
const soon = async (value, { signal, ref } = {}) => { await promised((f) => setImmediate(f), clearImmediate)(signal, ref); return value; };
async function* every(ms, value, options = {}) {
  for (;;) yield await wait(ms, value, options);
}
export const promises = { setTimeout: wait, setImmediate: soon, setInterval: every, scheduler: { wait: (ms, options) => wait(ms, undefined, options), yield: () => soon() } };
const custom = Symbol.for('nodejs.util.promisify.custom');
Object.defineProperty(setTimeout, custom, { value: wait });
Object.defineProperty(setImmediate, custom, { value: soon });
export { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate };
export default { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate, promises, Timeout, Immediate };
