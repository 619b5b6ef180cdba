// child_process over processes.mjs. All functions lead to start, and each has its errors in
// the way that Node has.
import { EventEmitter } from 'node:events';
import { Readable, Writable } from 'node:stream';
import { Buffer } from 'node:buffer';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { clearTimeout, hold, nextTick, release, setTimeout } from './loop.mjs';
import { ask, forget, onEnd, onRead, onWrite, piped, unclaimed } from './processes.mjs';
import osModule from './os.mjs';

const { std, os } = globalThis;
const { errno: numbers, signals } = osModule.constants;
const maxBuffer = 1024 * 1024;

const numberOf = (signal = 'SIGTERM') => {
  const n = typeof signal === 'number' ? signal : signals[`${signal}`.toUpperCase()];
  if (n === undefined) throw Object.assign(new TypeError(`Unknown signal: ${signal}`), { code: 'ERR_UNKNOWN_SIGNAL' });
  return n;
};
const nameOf = (n) => Object.keys(signals).find((name) => signals[name] === n) ?? `SIG${n}`;
const invalid = (name, type, value) => Object.assign(new TypeError(`The "${name}" argument must be of type ${type}. Received ${inspect(value)}`), { code: 'ERR_INVALID_ARG_TYPE' });

// failure is the error of a program that was not started.
const failure = (syscall, file, args, code) => Object.assign(new Error(`${syscall} ${file} ${code}`), { errno: -(numbers[code] ?? 5), code, syscall: `${syscall} ${file}`, path: file, spawnargs: args });

// command gives what is started, of a file, its arguments and options.
const command = (file, args, options) => {
  if (typeof file !== 'string') throw invalid('file', 'string', file);
  if (file === '') throw Object.assign(new TypeError("The argument 'file' cannot be empty. Received ''"), { code: 'ERR_INVALID_ARG_VALUE' });
  if (!Array.isArray(args)) [args, options] = [[], args ?? options];
  if (options !== undefined && options !== null && typeof options !== 'object') throw invalid('options', 'object', options);
  options = { ...options };
  args = args.map((a) => `${a}`);
  if ([file, ...args].some((a) => a.includes('\0'))) throw Object.assign(new TypeError("The argument 'args' must be a string without null bytes"), { code: 'ERR_INVALID_ARG_VALUE' });
  if (options.shell) {
    args = ['-c', [file, ...args].join(' ')];
    file = typeof options.shell === 'string' ? options.shell : '/bin/sh';
  }
  const env = Object.entries(options.env ?? globalThis.process.env).filter(([, v]) => v !== undefined).map(([k, v]) => `${k}=${v}`);
  const { cwd } = options, dir = cwd === undefined || cwd === null ? globalThis.process.cwd() : typeof cwd === 'string' ? cwd : fileURLToPath(cwd);
  return { file, args: [options.argv0 ?? file, ...args], env, dir: dir.startsWith('/') ? dir : `${globalThis.process.cwd()}/${dir}`, options };
};

// streams gives the three standard streams as the host takes them: pipe, null, or a number.
const streams = (stdio = 'pipe') => {
  if (!Array.isArray(stdio)) stdio = [stdio, stdio, stdio];
  if (stdio.includes('ipc')) throw Object.assign(new Error('child_process: processes of the sandbox have no channel for messages; use stdin and stdout'), { code: 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM' });
  if (stdio.slice(3).some((s) => s && s !== 'ignore' && s !== 'inherit')) throw Object.assign(new Error('child_process: a process of the sandbox has three streams'), { code: 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM' });
  return [0, 1, 2].map((i) => {
    const s = stdio[i] ?? 'pipe';
    if (s === 'pipe' || s === 'overlapped') return 'pipe';
    if (s === 'ignore') return 'null';
    if (s === 'inherit') return i;
    const fd = typeof s === 'number' ? s : s?.fd;
    if (typeof fd === 'number') return fd;
    throw Object.assign(new TypeError(`The argument 'stdio' is invalid. Received ${inspect(s)}`), { code: 'ERR_INVALID_ARG_VALUE' });
  });
};

// start starts a process. The answer has error where it could not.
const start = (what, stdio) => {
  std.out.flush();
  std.err.flush();
  const [s, errno] = os.stat(what.dir);
  if (errno !== 0 || (s.mode & os.S_IFMT) !== os.S_IFDIR) return { error: errno !== 0 ? 'ENOENT' : 'ENOTDIR' };
  const [stdin, stdout, stderr] = stdio;
  const started = ask({ op: 'start', args: [what.file, ...what.args.slice(1)], env: what.env, dir: what.dir, stdin, stdout, stderr });
  return started.error === 'ENOEXEC' ? { error: 'EACCES' } : started;
};

const output = (fd) => {
  const stream = new Readable({
    read() {
      onRead(fd, () => {
        if (stream.destroyed) return;
        const chunk = new Uint8Array(65536), n = os.read(fd, chunk.buffer, 0, chunk.length);
        stream.push(n > 0 ? Buffer.from(chunk.buffer, 0, n) : null);
      });
    },
    destroy(error, done) {
      forget(fd);
      os.close(fd);
      done(error);
    },
  });
  return stream;
};
const input = (fd) => new Writable({
  write(data, _, done) {
    let at = 0;
    const more = (room) => {
      const n = Math.min(data.length - at, Math.max(room, 1)), wrote = os.write(fd, data.buffer, data.byteOffset + at, n);
      if (wrote < 0) return done(Object.assign(new Error('write EPIPE'), { errno: -32, code: 'EPIPE', syscall: 'write' }));
      at += wrote;
      if (at < data.length) onWrite(fd, more);
      else done();
    };
    if (data.length > 0) onWrite(fd, more);
    else done();
  },
  destroy(error, done) {
    forget(fd);
    os.close(fd);
    done(error);
  },
});

class ChildProcess extends EventEmitter {
  constructor() {
    super();
    Object.assign(this, { pid: undefined, stdin: null, stdout: null, stderr: null, exitCode: null, signalCode: null, killed: false, connected: false, spawnfile: null, spawnargs: [] });
    Object.defineProperty(this, 'held', { value: false, writable: true });
  }
  kill(signal) {
    const n = numberOf(signal);
    if (this.pid === undefined || this.exitCode !== null || this.signalCode !== null) return false;
    if (ask({ op: 'kill', pid: this.pid, signal: n }).error) return false;
    this.killed = n !== 0 || this.killed;
    return true;
  }
  ref() { if (!this.held && this.pid !== undefined && this.exitCode === null && this.signalCode === null) { this.held = true; hold(); } }
  unref() { if (this.held) { this.held = false; release(); } }
  send() { throw Object.assign(new Error('child_process: processes of the sandbox have no channel for messages; use stdin and stdout'), { code: 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM' }); }
  disconnect() {}
  [Symbol.dispose]() { this.kill(); }
}

const spawn = (file, args, options) => {
  const what = command(file, args, options), stdio = streams(what.options.stdio);
  const child = new ChildProcess(), { signal, timeout, killSignal } = what.options;
  Object.assign(child, { spawnfile: what.file, spawnargs: what.args });
  signal?.throwIfAborted?.();
  const started = start(what, stdio);
  if (started.error) {
    const error = failure('spawn', what.file, what.args.slice(1), started.error);
    if (!['ENOENT', 'EACCES', 'EAGAIN', 'EMFILE', 'E2BIG'].includes(started.error)) throw error;
    if (stdio[0] === 'pipe') child.stdin = new Writable({ write: (_, __, done) => done() });
    if (stdio[1] === 'pipe') child.stdout = Readable.from([]);
    if (stdio[2] === 'pipe') child.stderr = Readable.from([]);
    child.stdio = [child.stdin, child.stdout, child.stderr];
    nextTick(() => {
      child.stdin?.destroy();
      child.emit('error', error);
      child.emit('close', error.errno, null);
    });
    return child;
  }
  child.pid = started.pid;
  let stdin;
  if (started.stdin !== undefined) {
    stdin = input(started.stdin);
    unclaimed.set(child, () => stdin.destroy());
    Object.defineProperty(child, 'stdin', { get: () => { unclaimed.delete(child); return stdin; }, enumerable: true, configurable: true });
  }
  if (started.stdout !== undefined) child.stdout = output(started.stdout);
  if (started.stderr !== undefined) child.stderr = output(started.stderr);
  Object.defineProperty(child, 'stdio', { get: () => [child.stdin, child.stdout, child.stderr], enumerable: true, configurable: true });
  child.ref();
  let open = 1; // the process and its outputs
  const closed = () => { if (--open === 0) child.emit('close', child.exitCode, child.signalCode); };
  for (const stream of [child.stdout, child.stderr]) {
    if (!stream) continue;
    open++;
    hold();
    stream.once('close', () => { release(); closed(); });
  }
  const timer = timeout > 0 ? setTimeout(() => child.kill(killSignal), timeout).unref() : undefined;
  const abort = () => {
    if (child.kill(killSignal)) child.emit('error', Object.assign(new Error('The operation was aborted', { cause: signal.reason }), { name: 'AbortError', code: 'ABORT_ERR' }));
  };
  signal?.addEventListener('abort', abort, { once: true });
  onEnd(child.pid, (end) => {
    if (timer) clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
    if (end.signal) child.signalCode = nameOf(end.signal);
    else child.exitCode = end.exit | 0;
    child.unref();
    unclaimed.delete(child);
    stdin?.destroy();
    child.emit('exit', child.exitCode, child.signalCode);
    nextTick(() => {
      for (const stream of [child.stdout, child.stderr]) if (stream && stream.readableFlowing === null && stream.listenerCount('readable') === 0) stream.resume();
    });
    closed();
  });
  nextTick(() => child.emit('spawn'));
  return child;
};

const decoded = (list, encoding) => {
  const all = Buffer.concat(list);
  return encoding && encoding !== 'buffer' ? all.toString(encoding) : all;
};

// execFile collects what a process writes, and calls back at its end.
const execFile = (file, args, options, done) => {
  const given = [args, options, done];
  done = given.find((a) => typeof a === 'function');
  args = Array.isArray(given[0]) ? given[0] : [];
  options = given.find((a) => a !== null && typeof a === 'object' && !Array.isArray(a));
  options = { encoding: 'utf8', maxBuffer, timeout: 0, killSignal: 'SIGTERM', ...options };
  const { timeout } = options;
  const child = spawn(file, args, { ...options, timeout: 0, stdio: 'pipe' });
  const got = { stdout: [], stderr: [] };
  const line = [file, ...args].join(' ');
  let error = null, ended = false, killed = false;
  const kill = (why) => {
    error ??= why;
    killed = true;
    child.stdout?.destroy();
    child.stderr?.destroy();
    child.kill(options.killSignal);
  };
  const timer = timeout > 0 ? setTimeout(() => kill(null), timeout) : undefined;
  for (const name of ['stdout', 'stderr']) {
    let size = 0;
    child[name].on('data', (chunk) => {
      size += chunk.length;
      if (size <= options.maxBuffer) return got[name].push(chunk);
      got[name].push(chunk.subarray(0, chunk.length - (size - options.maxBuffer)));
      kill(Object.assign(new RangeError(`${name} maxBuffer length exceeded`), { code: 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER' }));
    });
  }
  const finish = (code, signal) => {
    if (ended) return;
    ended = true;
    if (timer) clearTimeout(timer);
    const out = decoded(got.stdout, options.encoding), err = decoded(got.stderr, options.encoding);
    if (!error && (code !== 0 || signal !== null)) {
      error = Object.assign(new Error(`Command failed: ${options.line ?? line}\n${err}`), { code, killed: child.killed || killed, signal });
    }
    if (error) error.cmd = options.line ?? line;
    done?.(error, out, err);
  };
  child.on('error', (e) => { error = e; finish(-1, null); });
  child.on('close', finish);
  return child;
};
const exec = (text, options, done) => {
  if (typeof text !== 'string') throw invalid('command', 'string', text);
  if (typeof options === 'function') [options, done] = [{}, options];
  const shell = typeof options?.shell === 'string' ? options.shell : '/bin/sh';
  return execFile(shell, ['-c', text], { ...options, shell: false, line: text }, done);
};
const promised = (f) => (...args) => {
  let child;
  const promise = new Promise((resolve, reject) => {
    child = f(...args, (error, stdout, stderr) => (error ? reject(Object.assign(error, { stdout, stderr })) : resolve({ stdout, stderr })));
  });
  return Object.assign(promise, { child });
};
const custom = Symbol.for('nodejs.util.promisify.custom');
for (const f of [exec, execFile]) Object.defineProperty(f, custom, { value: promised(f) });

// spawnSync waits for the end of a process; no timer or other process's event comes meanwhile.
const spawnSync = (file, args, options) => {
  const what = command(file, args, options), o = { maxBuffer, ...what.options }, stdio = streams(o.stdio);
  let bytes;
  if (o.input !== undefined && o.input !== null) {
    bytes = typeof o.input === 'string' ? Buffer.from(o.input) : Buffer.from(o.input.buffer ?? o.input, o.input.byteOffset, o.input.byteLength);
    stdio[0] = 'pipe';
  }
  const started = start(what, stdio);
  if (started.error) {
    return { pid: 0, output: null, stdout: null, stderr: null, status: null, signal: null, error: failure('spawnSync', what.file, what.args.slice(1), started.error) };
  }
  const got = { 1: [], 2: [] }, size = { 1: 0, 2: 0 };
  const each = (fd, chunk) => {
    size[fd] += chunk.length;
    got[fd].push(size[fd] > o.maxBuffer ? chunk.subarray(0, Math.max(0, chunk.length - (size[fd] - o.maxBuffer))) : chunk);
    return size[fd] > o.maxBuffer ? 'ENOBUFS' : undefined;
  };
  let { end, stopped } = piped(started, bytes, each, o.timeout);
  if (!end) {
    ask({ op: 'kill', pid: started.pid, signal: numberOf(o.killSignal) });
    end = ask({ op: 'wait', pid: started.pid });
  }
  const stdout = started.stdout === undefined ? null : decoded(got[1], o.encoding), stderr = started.stderr === undefined ? null : decoded(got[2], o.encoding);
  const result = { pid: started.pid, output: [null, stdout, stderr], stdout, stderr, status: end.signal ? null : (end.exit ?? 0) | 0, signal: end.signal ? nameOf(end.signal) : null };
  if (stopped) result.error = failure('spawnSync', what.file, what.args.slice(1), stopped);
  return result;
};
const failed = (result, line) => {
  let { error } = result;
  if (!error && result.status === 0) return;
  error ??= new Error(`Command failed: ${line}${result.stderr?.length > 0 ? `\n${result.stderr}` : ''}`);
  throw Object.assign(error, result);
};
const checked = (file, args, options, line) => {
  const result = spawnSync(file, args, options);
  if (!options?.stdio && result.stderr?.length > 0) globalThis.process.stderr.write(result.stderr);
  failed(result, line);
  return result.stdout;
};
const execFileSync = (file, args, options) => {
  if (!Array.isArray(args)) [args, options] = [[], args ?? options];
  return checked(file, args, options, [file, ...args].join(' '));
};
const execSync = (text, options) => {
  if (typeof text !== 'string') throw invalid('command', 'string', text);
  return checked(typeof options?.shell === 'string' ? options.shell : '/bin/sh', ['-c', text], { ...options, shell: false }, text);
};

// fork is a spawn of Node: the process has no channel for messages.
const fork = (file, args, options) => {
  if (!Array.isArray(args)) [args, options] = [[], args ?? options];
  const { execPath = globalThis.process.execPath, execArgv = globalThis.process.execArgv, silent } = options ?? {};
  return spawn(execPath, [...execArgv, typeof file === 'string' ? file : fileURLToPath(file), ...args], { stdio: silent ? 'pipe' : 'inherit', ...options, shell: false });
};

export const kill = (pid, signal) => {
  const { error } = ask({ op: 'kill', pid, signal: numberOf(signal) });
  if (error) throw Object.assign(new Error(`kill ${error}`), { code: error, errno: -3, syscall: 'kill' });
  return true;
};

export default { ChildProcess, spawn, exec, execFile, fork, spawnSync, execSync, execFileSync };
