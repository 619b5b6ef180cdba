// unavailable makes a module of Node that the sandbox does not have: it can be loaded, and
// what is called of it says why it does nothing.
import { http2 } from './http2.mjs';
import { MessageChannel, MessagePort } from './messages.mjs';

const why = {
  net: 'sockets are not available: http, https and fetch are', tls: 'sockets are not available: https and fetch are', dgram: 'sockets are not available: http, https and fetch are',
  dns: 'names are resolved by the host: http, https and fetch take them', http2: 'HTTP/2 is not available: http, https and fetch are', worker_threads: 'threads are not available', cluster: 'processes are not available',
  inspector: 'there is no debugger', vm: 'contexts are not available', v8: 'the engine is QuickJS', repl: 'there is no terminal', wasi: 'WebAssembly is not available', sqlite: 'SQLite is not available', test: 'the test runner is not available',
  trace_events: 'tracing is not available',
};
const names = {
  net: ['connect', 'createConnection', 'createServer', 'Socket', 'Server'], tls: ['connect', 'createServer', 'TLSSocket', 'createSecureContext'], dgram: ['createSocket', 'Socket'],
  dns: ['lookup', 'resolve', 'resolve4', 'resolve6', 'reverse', 'setServers'], http2: ['connect', 'createServer', 'createSecureServer', 'performServerHandshake', 'getPackedSettings', 'getUnpackedSettings', 'Http2ServerRequest', 'Http2ServerResponse'], worker_threads: ['Worker', 'BroadcastChannel'],
  cluster: ['fork', 'setupPrimary'], inspector: ['open', 'Session'], vm: ['createContext', 'runInContext', 'runInNewContext', 'Script', 'SourceTextModule'], v8: ['getHeapSnapshot', 'setFlagsFromString'],
  repl: ['start'], wasi: ['WASI'], sqlite: ['DatabaseSync'], test: ['test', 'describe', 'it'], trace_events: ['createTracing'],
};
const isIP = (text) => (/^\d{1,3}(\.\d{1,3}){3}$/.test(text) ? 4 : /^[\da-f:.]+$/i.test(text) && text.includes(':') ? 6 : 0);
const more = {
  net: () => ({ isIP, isIPv4: (t) => isIP(t) === 4, isIPv6: (t) => isIP(t) === 6 }), worker_threads: () => ({ isMainThread: true, parentPort: null, workerData: null, threadId: 0, MessageChannel, MessagePort }),
  cluster: () => ({ isPrimary: true, isMaster: true, isWorker: false, workers: {} }), v8: () => ({ serialize: (v) => globalThis.Buffer.from(JSON.stringify(v)), deserialize: (b) => JSON.parse(b.toString()), getHeapStatistics: () => ({ total_heap_size: 8388608, used_heap_size: 4194304, heap_size_limit: 67108864 }) }),
  http2,
  vm: () => ({ runInThisContext: (text) => (0, eval)(text), isContext: () => false }),
};
export const unavailable = Object.keys(why);
export const make = (name) => {
  const m = {};
  for (const f of names[name]) {
    m[f] = { [f]: function () {
      throw Object.assign(new Error(`${name}.${f}: ${why[name]}`), { code: 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM' });
    } }[f];
  }
  return Object.assign(m, more[name]?.());
};
