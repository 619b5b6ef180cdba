// process, its streams, and how a run ends.
import { EventEmitter } from 'node:events';
import { Readable, Writable } from 'node:stream';
import { Buffer } from 'node:buffer';
import { inspect } from 'node:util';
import * as loop from './loop.mjs';

const { std, os } = globalThis;
const { puts, flush } = Object.getPrototypeOf(std.out);
const version = 'v20.20.2';

const process = Object.create(Object.create(EventEmitter.prototype, { constructor: { value: function process() {}, writable: true, configurable: true }, [Symbol.toStringTag]: { value: 'process', configurable: true } }));
EventEmitter.call(process);

let exiting = false, cwd = '/', umask = 0o22, began = 0, exitCode;
const checked = (code) => {
  if (code === undefined || code === null || Number.isInteger(code)) return code ?? undefined;
  if (typeof code === 'string' && code !== '' && Number.isInteger(Number(code))) return Number(code);
  throw Object.assign(new TypeError(`The "code" argument must be of type number. Received ${inspect(code)}`), { code: 'ERR_INVALID_ARG_TYPE' });
};
const exit = (code) => {
  if (code !== undefined) process.exitCode = code;
  if (!exiting) {
    exiting = true;
    process.emit('exit', exitCode ?? 0);
  }
  std.out.flush();
  std.err.flush();
  std.exit((exitCode ?? 0) & 0xff);
};

// describe prints an error that nobody caught as Node does.
const describe = (error) => {
  const { locate } = hooks;
  const place = error instanceof Error ? locate?.(error) : undefined;
  const text = error instanceof Error ? inspect(error) : `Uncaught:\n${inspect(error)}\n(Use \`node --trace-uncaught ...\` to show where the exception was thrown)`;
  return `${place ?? ''}${text}\n\nNode.js ${version}\n`;
};
const hooks = { locate: undefined };
const fatal = (error, origin = 'uncaughtException') => {
  if (exiting) {
    std.err.puts(describe(error));
    std.err.flush();
    std.exit(7);
  }
  try {
    if (origin === 'unhandledRejection' && process.listenerCount('unhandledRejection') > 0) {
      process.emit('unhandledRejection', error, Promise.resolve());
      return true;
    }
    process.emit('uncaughtExceptionMonitor', error, origin);
    if (process.listenerCount('uncaughtException') > 0) {
      process.emit('uncaughtException', error, origin);
      return true;
    }
  } catch (again) {
    error = again;
  }
  std.out.flush();
  std.err.puts(describe(error).toWellFormed());
  exit(exitCode || 1);
};
loop.hooks.fail = fatal;
loop.hooks.idle = () => {
  if (hooks.pending?.()) {
    std.err.puts('Warning: Detected unsettled top-level await\n');
    return exit(13);
  }
  process.emit('beforeExit', exitCode ?? 0);
};

loop.hooks.end = () => exit();

const output = (file, fd) => {
  const stream = new Writable({
    decodeStrings: false,
    write(data, encoding, done) {
      try {
        if (typeof data === 'string' && /^utf-?8$/i.test(encoding)) Reflect.apply(puts, file, [data.toWellFormed()]);
        else {
          const b = Buffer.from(data, typeof data === 'string' ? encoding : undefined);
          file.write(b.buffer, b.byteOffset, b.length);
        }
        Reflect.apply(flush, file, []);
      } catch (e) {
        return done(e);
      }
      done();
    },
  });
  stream.fd = fd;
  stream._type = 'pipe';
  stream.isTTY = undefined;
  stream.getColorDepth = () => 1;
  stream.hasColors = () => false;
  stream._destroy = (error, done) => done(error);
  return stream;
};

const input = () => {
  const stream = new Readable({
    highWaterMark: 65536,
    read() {
      loop.io(() => {
        if (stream.destroyed) return;
        const chunk = new Uint8Array(65536);
        const n = globalThis.os.read(0, chunk.buffer, 0, chunk.length);
        stream.push(n > 0 ? Buffer.from(chunk.buffer, 0, n) : null);
      });
    },
  });
  stream.fd = 0;
  stream.isTTY = undefined;
  stream.setRawMode = () => stream;
  stream.ref = stream.unref = () => stream;
  return stream;
};
const lazily = (name, make) => {
  let made;
  Object.defineProperty(process, name, { get: () => made ??= make(), set: (v) => { made = v; }, enumerable: true, configurable: true });
};
lazily('stdin', input);
lazily('stdout', () => output(std.out, 1));
lazily('stderr', () => output(std.err, 2));

Object.defineProperty(process, 'exitCode', { get: () => exitCode, set: (code) => { exitCode = checked(code); }, enumerable: true, configurable: true });

const hrtime = (since) => {
  const ms = globalThis.performance.now(), s = Math.floor(ms / 1000), ns = Math.floor((ms % 1000) * 1e6);
  if (!since) return [s, ns];
  const d = ns - since[1];
  return d < 0 ? [s - since[0] - 1, d + 1e9] : [s - since[0], d];
};
hrtime.bigint = () => BigInt(Math.floor(globalThis.performance.now() * 1e6));

const no = (name, why) => () => {
  throw Object.assign(new Error(`process.${name} is not available: ${why}`), { code: 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM' });
};
Object.assign(process, {
  version, versions: { node: version.slice(1), v8: '0.0.0-quickjs', quickjs: '0.11.0', modules: '115' }, platform: 'linux', arch: 'x64', title: 'node', pid: 1, ppid: 0, release: { name: 'node', lts: 'Iron' },
  execPath: '/usr/bin/node', execArgv: [], argv0: 'node', features: { inspector: false, typescript: 'transform' }, config: { target_defaults: {}, variables: {} }, debugPort: 9229,
  argv: [], env: {}, exit, reallyExit: exit, nextTick: loop.nextTick, hrtime,
  abort() { std.exit(134); },
  cwd: () => cwd,
  chdir(dir) {
    const full = dir.startsWith('/') ? dir : `${cwd}/${dir}`;
    if (os.chdir(full) < 0) throw Object.assign(new Error(`ENOENT: no such file or directory, chdir ${cwd} -> '${dir}'`), { code: 'ENOENT', errno: -2, syscall: 'chdir', path: cwd, dest: dir });
    cwd = hooks.normalize(full);
  },
  umask(mask) { const old = umask; if (mask !== undefined) umask = typeof mask === 'string' ? parseInt(mask, 8) : mask; return old; },
  uptime: () => (globalThis.performance.now() - began) / 1000,
  memoryUsage: Object.assign(() => ({ rss: 16777216, heapTotal: 8388608, heapUsed: 4194304, external: 0, arrayBuffers: 0 }), { rss: () => 16777216 }),
  resourceUsage: () => ({ userCPUTime: 0, systemCPUTime: 0, maxRSS: 16384 }),
  cpuUsage: () => ({ user: Math.floor(globalThis.performance.now() * 1000), system: 0 }),
  constrainedMemory: () => 0, availableMemory: () => 0,
  getuid: () => 1000, geteuid: () => 1000, getgid: () => 1000, getegid: () => 1000, getgroups: () => [1000],
  kill(pid, signal) {
    if (pid !== process.pid) return hooks.kill(pid, signal);
    if (signal === 0) return true;
    exit(signal === 'SIGKILL' || signal === 9 ? 137 : 143);
  },
  emitWarning(warning, type = 'Warning', code) {
    if (type !== null && typeof type === 'object') ({ type = 'Warning', code } = type);
    if (typeof warning === 'string') warning = Object.assign(new Error(warning), { name: type }, code ? { code } : {});
    loop.nextTick(() => {
      process.emit('warning', warning);
      std.err.puts(`(node:1) ${code ? `[${code}] ` : ''}${warning.name}: ${warning.message}\n`);
    });
  },
  dlopen: no('dlopen', 'native add-ons do not run in the sandbox'),
  binding: no('binding', 'it is internal to Node'),
  setUncaughtExceptionCaptureCallback() {}, hasUncaughtExceptionCaptureCallback: () => false, setSourceMapsEnabled() {},
  allowedNodeEnvironmentFlags: new Set(), report: {}, stdio: [],
  getBuiltinModule: (name) => hooks.builtin(name),
});

// begin sets what a run knows of its own.
const begin = (call) => {
  began = globalThis.performance.now();
  cwd = call.cwd;
  os.chdir(cwd);
  process.argv = ['/usr/bin/node', ...call.file === undefined ? [] : [call.file], ...call.args];
  process.execArgv = call.options ?? [];
  process.pid = call.pid ?? 1;
  const { env } = call;
  process.env = new Proxy(env, {
    set: (target, name, value) => { if (typeof name !== 'symbol') target[name] = `${value}`; return true; },
    defineProperty: (target, name, d) => Reflect.defineProperty(target, name, 'value' in d ? { ...d, value: `${d.value}`, writable: true, enumerable: true, configurable: true } : d),
  });
};

export { begin, fatal, hooks, exit };
export default process;
const { nextTick, env } = process;
export { nextTick, env };
