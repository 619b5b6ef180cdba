// fs over QuickJS's os: calls are made at once, and callbacks told by the event loop. The
// sandbox has no modes, owners or links of its own: chmod does nothing, symlink fails.
import path from 'node:path';
import { Buffer } from 'node:buffer';
import { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { io } from './loop.mjs';

const { os, std } = globalThis;

// By the numbers of WASI: name, number in Linux, text.
const errors = {
  2: ['EACCES', -13, 'permission denied'], 8: ['EBADF', -9, 'bad file descriptor'], 20: ['EEXIST', -17, 'file already exists'], 22: ['EFBIG', -27, 'file too large'],
  28: ['EINVAL', -22, 'invalid argument'], 31: ['EISDIR', -21, 'illegal operation on a directory'], 32: ['ELOOP', -40, 'too many symbolic links encountered'],
  33: ['EMFILE', -24, 'too many open files'], 37: ['ENAMETOOLONG', -36, 'name too long'], 44: ['ENOENT', -2, 'no such file or directory'], 51: ['ENOSPC', -28, 'no space left on device'],
  52: ['ENOSYS', -38, 'function not implemented'], 54: ['ENOTDIR', -20, 'not a directory'], 55: ['ENOTEMPTY', -39, 'directory not empty'], 58: ['ENOTSUP', -95, 'operation not supported'],
  63: ['EPERM', -1, 'operation not permitted'], 69: ['EROFS', -30, 'read-only file system'], 75: ['EXDEV', -18, 'cross-device link not permitted'], 76: ['EPERM', -1, 'operation not permitted'],
};
export const codes = errors;
const fail = (number, syscall, file, dest) => {
  const [code, errno, text] = errors[Math.abs(number)] ?? ['EIO', -5, 'i/o error'];
  const names = file === undefined ? '' : ` '${file}'${dest === undefined ? '' : ` -> '${dest}'`}`;
  const error = new Error(`${code}: ${text}, ${syscall}${names}`);
  Object.assign(error, { errno, code, syscall });
  if (file !== undefined) error.path = file;
  if (dest !== undefined) error.dest = dest;
  return error;
};
const check = (result, ...of) => {
  if (result < 0) throw fail(result, ...of);
  return result;
};

const invalid = (name, want, got) => {
  const kind = got === null ? 'null' : got === undefined ? 'undefined' : typeof got === 'object' ? `an instance of ${got.constructor?.name ?? 'Object'}` : typeof got === 'function' ? `function ${got.name}` : `type ${typeof got} (${typeof got === 'string' ? `'${got}'` : String(got)})`;
  return Object.assign(new TypeError(`The "${name}" argument must be ${want}. Received ${kind}`), { code: 'ERR_INVALID_ARG_TYPE' });
};
const named = (file, what = 'path') => {
  if (Buffer.isBuffer(file)) file = file.toString();
  else if (file instanceof URL) file = fileURLToPath(file);
  if (typeof file !== 'string') throw invalid(what, 'of type string or an instance of Buffer or URL', file);
  if (file.includes('\0')) throw Object.assign(new TypeError(`The argument '${what}' must be a string, Uint8Array, or URL without null bytes. Received '${file}'`), { code: 'ERR_INVALID_ARG_VALUE' });
  return file;
};
const at = (file) => path.resolve(file);
const encodingOf = (options) => (typeof options === 'string' ? options : options?.encoding);
const encoded = (buffer, encoding) => (encoding && encoding !== 'buffer' ? buffer.toString(encoding) : buffer);
const bytes = (data, encoding) => {
  if (typeof data === 'string') return Buffer.from(data, encoding && encoding !== 'buffer' ? encoding : 'utf8');
  if (ArrayBuffer.isView(data)) return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  throw invalid('data', 'of type string or an instance of Buffer, TypedArray, or DataView', data);
};

const flagsOf = { r: os.O_RDONLY, rs: os.O_RDONLY, 'r+': os.O_RDWR, w: os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 'w+': os.O_RDWR | os.O_CREAT | os.O_TRUNC, a: os.O_WRONLY | os.O_CREAT | os.O_APPEND, 'a+': os.O_RDWR | os.O_CREAT | os.O_APPEND };
const flagNumber = (flags) => {
  if (typeof flags === 'number') {
    let f = [os.O_RDONLY, os.O_WRONLY, os.O_RDWR][flags & 3];
    for (const [bit, own] of [[64, os.O_CREAT], [128, os.O_EXCL], [512, os.O_TRUNC], [1024, os.O_APPEND]]) if (flags & bit) f |= own;
    return f;
  }
  const exclusive = flags.includes('x');
  const f = flagsOf[flags.replace('x', '').replace('s', '')];
  if (f === undefined) throw Object.assign(new TypeError(`The argument 'flags' is invalid. Received '${flags}'`), { code: 'ERR_INVALID_ARG_VALUE' });
  return exclusive ? f | os.O_EXCL : f;
};

const fds = new Map([[0, '/dev/stdin'], [1, '/dev/stdout'], [2, '/dev/stderr']]);

export class Stats {
  constructor(s) {
    this.dev = s.dev; this.mode = s.mode & 0o777 ? s.mode : s.mode | ((s.mode & os.S_IFMT) === os.S_IFDIR ? 0o755 : 0o644); this.nlink = s.nlink; this.uid = 0; this.gid = 0; this.rdev = 0;
    this.blksize = 4096; this.ino = s.ino; this.size = s.size; this.blocks = Math.ceil(s.size / 512);
    for (const [name, ms] of [['atime', s.atime], ['mtime', s.mtime], ['ctime', s.ctime], ['birthtime', s.ctime]]) {
      this[`${name}Ms`] = ms;
      Object.defineProperty(this, name, { value: new Date(ms), writable: true, enumerable: true, configurable: true });
    }
  }
  #is(kind) { return (this.mode & os.S_IFMT) === kind; }
  isFile() { return this.#is(os.S_IFREG); }
  isDirectory() { return this.#is(os.S_IFDIR); }
  isSymbolicLink() { return this.#is(os.S_IFLNK); }
  isBlockDevice() { return this.#is(os.S_IFBLK); }
  isCharacterDevice() { return this.#is(os.S_IFCHR); }
  isFIFO() { return this.#is(os.S_IFIFO); }
  isSocket() { return this.#is(os.S_IFSOCK); }
}
export class Dirent {
  #stats;
  constructor(name, folder, stats) {
    this.name = name; this.parentPath = folder; this.path = folder;
    this.#stats = stats;
  }
  isFile() { return this.#stats?.isFile() ?? false; }
  isDirectory() { return this.#stats?.isDirectory() ?? false; }
  isSymbolicLink() { return false; }
  isBlockDevice() { return false; }
  isCharacterDevice() { return false; }
  isFIFO() { return false; }
  isSocket() { return false; }
}

const look = (file) => {
  const [s, errno] = os.stat(at(file));
  return errno === 0 ? new Stats(s) : -Math.abs(errno);
};
const isDir = (file) => {
  const s = look(file);
  return typeof s !== 'number' && s.isDirectory();
};

const big = (s) => Object.assign(Object.create(Stats.prototype), Object.fromEntries(Object.entries(s).map(([k, v]) => [k, typeof v === 'number' ? BigInt(Math.trunc(v)) : v])));
const statOf = (syscall) => (file, options) => {
  file = named(file);
  const s = look(file);
  if (typeof s === 'number') {
    if (options?.throwIfNoEntry === false && (s === -44 || s === -54)) return undefined;
    throw fail(s, syscall, file);
  }
  return options?.bigint ? big(s) : s;
};

const readAll = (fd) => {
  const chunks = [];
  for (;;) {
    const chunk = new Uint8Array(65536);
    const n = check(globalThis.os.read(fd, chunk.buffer, 0, chunk.length), 'read');
    if (n === 0) return Buffer.concat(chunks);
    chunks.push(n === chunk.length ? chunk : chunk.subarray(0, n));
  }
};
const writeAll = (fd, b) => {
  for (let done = 0; done < b.length;) done += check(os.write(fd, b.buffer, b.byteOffset + done, b.length - done), 'write');
  return b.length;
};

const sync = {
  openSync(file, flags = 'r') {
    file = named(file);
    if (file === '/dev/stdin') return 0;
    if (file === '/dev/stdout') return 1;
    if (file === '/dev/stderr') return 2;
    const fd = check(os.open(at(file), flagNumber(flags ?? 'r'), 0o666), 'open', file);
    fds.set(fd, at(file));
    return fd;
  },
  closeSync(fd) {
    if (fd <= 2) return;
    fds.delete(fd);
    check(os.close(fd), 'close');
  },
  readSync(fd, buffer, offset = 0, length, position) {
    if (offset !== null && typeof offset === 'object') ({ offset = 0, length, position } = offset);
    length ??= buffer.byteLength - offset;
    if (typeof position === 'number' && position >= 0 || typeof position === 'bigint') os.seek(fd, Number(position), std.SEEK_SET);
    return check(globalThis.os.read(fd, buffer.buffer, buffer.byteOffset + offset, length), 'read');
  },
  writeSync(fd, data, offset, length, position) {
    let b;
    if (typeof data === 'string') [position, b] = [offset, bytes(data, length)];
    else b = bytes(data).subarray(offset ?? 0, length === undefined || length === null ? undefined : (offset ?? 0) + length);
    if (typeof position === 'number') os.seek(fd, position, std.SEEK_SET);
    if (fd === 1) std.out.flush();
    return writeAll(fd, b);
  },
  readvSync(fd, views) { return views.reduce((n, v) => n + sync.readSync(fd, v), 0); },
  writevSync(fd, views) { return views.reduce((n, v) => n + sync.writeSync(fd, v), 0); },
  readFileSync(file, options) {
    const encoding = encodingOf(options);
    if (typeof file === 'number') return encoded(readAll(file), encoding);
    file = named(file);
    if (file === '/dev/stdin') return encoded(readAll(0), encoding);
    const s = look(file);
    if (typeof s === 'number') throw fail(s, 'open', file);
    if (s.isDirectory()) throw fail(31, 'read');
    if (/^utf-?8$/i.test(encoding) && s.isFile()) {
      const text = std.loadFile(at(file)); // U+FFFD may stand for other bytes than in Node
      if (text !== null && text.split('\ufffd', 2).length < 2) return text;
    }
    const fd = check(os.open(at(file), os.O_RDONLY), 'open', file);
    try {
      return encoded(readAll(fd), encoding);
    } finally {
      os.close(fd);
    }
  },
  writeFileSync(file, data, options) {
    const b = bytes(data, encodingOf(options));
    if (typeof file === 'number') return void sync.writeSync(file, b);
    const fd = sync.openSync(file, options?.flag ?? 'w');
    try {
      writeAll(fd, b);
    } finally {
      sync.closeSync(fd);
    }
  },
  appendFileSync(file, data, options) { sync.writeFileSync(file, data, { encoding: encodingOf(options), flag: options?.flag ?? 'a' }); },
  existsSync(file) {
    try {
      return typeof look(named(file)) !== 'number';
    } catch {
      return false;
    }
  },
  accessSync(file) {
    file = named(file);
    const s = look(file);
    if (typeof s === 'number') throw fail(s, 'access', file);
  },
  statSync: statOf('stat'),
  lstatSync: statOf('lstat'),
  fstatSync(fd, options) {
    if (fd <= 2) return new Stats({ mode: os.S_IFIFO | 0o600, size: 0, dev: 0, ino: 0, nlink: 1, atime: 0, mtime: 0, ctime: 0 });
    const file = fds.get(fd);
    if (file === undefined) throw fail(8, 'fstat');
    return sync.statSync(file, options);
  },
  mkdirSync(file, options) {
    file = named(file);
    const full = at(file);
    if (!options?.recursive) return void check(os.mkdir(full, 0o777), 'mkdir', file);
    let made;
    let part = '/';
    for (const name of full.split('/').filter(Boolean)) {
      part = path.join(part, name);
      if (isDir(part)) continue;
      check(os.mkdir(part, 0o777), 'mkdir', file);
      made ??= part;
    }
    return made;
  },
  mkdtempSync(prefix, options) {
    prefix = named(prefix, 'prefix');
    const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
    for (let tries = 0; ; tries++) {
      const name = prefix + Array.from({ length: 6 }, () => letters[Math.floor(Math.random() * 62)]).join('');
      const result = os.mkdir(at(name), 0o700);
      if (result >= 0 || tries > 20) return check(result, 'mkdtemp', `${prefix}XXXXXX`), encoded(name, encodingOf(options));
      if (result !== -20) check(result, 'mkdtemp', `${prefix}XXXXXX`);
    }
  },
  readdirSync(file, options) {
    file = named(file);
    const [names, errno] = os.readdir(at(file));
    if (errno !== 0 || !isDir(file)) throw fail(errno || 54, 'scandir', file);
    const list = [];
    for (const name of names.filter((n) => n !== '.' && n !== '..').sort()) {
      const full = path.join(at(file), name);
      const stats = options?.withFileTypes || options?.recursive ? look(full) : 0;
      const known = typeof stats === 'number' ? undefined : stats;
      list.push(options?.withFileTypes ? new Dirent(name, file, known) : options?.encoding === 'buffer' ? Buffer.from(name) : name);
      if (options?.recursive && known?.isDirectory()) {
        for (const below of sync.readdirSync(path.join(file, name), options)) list.push(typeof below === 'string' ? path.join(name, below) : below);
      }
    }
    return list;
  },
  rmdirSync(file, options) {
    file = named(file);
    if (options?.recursive) return sync.rmSync(file, options);
    const s = look(file);
    if (typeof s === 'number') throw fail(s, 'rmdir', file);
    if (!s.isDirectory()) throw fail(54, 'rmdir', file);
    check(os.remove(at(file)), 'rmdir', file);
  },
  unlinkSync(file) {
    file = named(file);
    if (isDir(file)) throw fail(31, 'unlink', file);
    check(os.remove(at(file)), 'unlink', file);
  },
  rmSync(file, options) {
    file = named(file);
    const s = look(file);
    if (typeof s === 'number') {
      if (options?.force && (s === -44 || s === -54)) return;
      const gone = os.remove(at(file)); // a link that leads nowhere
      if (gone >= 0) return;
      throw fail(s, 'lstat', file);
    }
    if (!s.isDirectory()) return void check(os.remove(at(file)), 'unlink', file);
    if (!options?.recursive) throw Object.assign(new Error(`Path is a directory: rm returned EISDIR (is a directory) ${file}`), { name: 'SystemError', code: 'ERR_FS_EISDIR', errno: 21, syscall: 'rm', path: file });
    for (const name of sync.readdirSync(file)) sync.rmSync(path.join(file, name), options);
    check(os.remove(at(file)), 'rmdir', file);
  },
  renameSync(from, to) {
    from = named(from, 'oldPath');
    to = named(to, 'newPath');
    check(os.rename(at(from), at(to)), 'rename', from, to);
  },
  copyFileSync(from, to, mode = 0) {
    from = named(from, 'src');
    to = named(to, 'dest');
    if (mode & 1 && sync.existsSync(to)) throw fail(20, 'copyfile', from, to);
    let data;
    try {
      data = sync.readFileSync(from);
    } catch (e) {
      throw fail(Object.keys(errors).find((n) => errors[n][0] === e.code), 'copyfile', from, to);
    }
    sync.writeFileSync(to, data);
  },
  cpSync(from, to, options = {}) {
    from = named(from, 'src');
    to = named(to, 'dest');
    if (options.filter && !options.filter(from, to)) return;
    if (!isDir(from)) {
      if (sync.existsSync(to) && options.force === false) {
        if (options.errorOnExist) throw Object.assign(new Error(`Target already exists: cp returned EEXIST (${to} already exists) ${to}`), { code: 'ERR_FS_CP_EEXIST' });
        return;
      }
      sync.mkdirSync(path.dirname(to), { recursive: true });
      return sync.copyFileSync(from, to);
    }
    if (!options.recursive) throw Object.assign(new Error(`Recursive option not enabled, cannot copy a directory: cp returned EISDIR (${from} is a directory (not copied)) ${from}`), { code: 'ERR_FS_EISDIR' });
    sync.mkdirSync(to, { recursive: true });
    for (const name of sync.readdirSync(from)) sync.cpSync(path.join(from, name), path.join(to, name), options);
  },
  truncateSync(file, length = 0) {
    const data = sync.readFileSync(file), cut = Buffer.alloc(length);
    data.copy(cut, 0, 0, Math.min(length, data.length));
    sync.writeFileSync(file, cut, { flag: 'r+' });
    if (length < data.length) sync.writeFileSync(file, cut);
  },
  ftruncateSync(fd, length) { sync.truncateSync(fds.get(fd), length); },
  utimesSync(file, atime, mtime) {
    file = named(file);
    const ms = (t) => (t instanceof Date ? t.getTime() : +t * 1000);
    check(os.utimes(at(file), ms(atime), ms(mtime)), 'utime', file);
  },
  futimesSync(fd, atime, mtime) { sync.utimesSync(fds.get(fd), atime, mtime); },
  realpathSync(file, options) {
    file = named(file);
    const s = look(file);
    if (typeof s === 'number') throw fail(s, 'lstat', at(file));
    return encoded(at(file), encodingOf(options) === 'utf8' ? undefined : encodingOf(options));
  },
  readlinkSync(file) { throw fail(typeof look(named(file)) === 'number' ? look(file) : 28, 'readlink', file); },
  symlinkSync(target, file) { throw fail(63, 'symlink', target, named(file)); },
  linkSync(from, to) { throw fail(63, 'link', named(from), named(to)); },
  chmodSync(file) { sync.accessSync(file); },
  fchmodSync() {}, lchownSync() {}, fchownSync() {}, fsyncSync() {}, fdatasyncSync() {},
  chownSync(file) { sync.accessSync(file); },
  opendirSync(file) { return new Dir(named(file), sync.readdirSync(file, { withFileTypes: true })); },
};
sync.realpathSync.native = sync.realpathSync;

export class Dir {
  #list;
  constructor(file, list) { this.path = file; this.#list = list; }
  readSync() { return this.#list.shift() ?? null; }
  async read() { return this.readSync(); }
  closeSync() {}
  async close() {}
  async* [Symbol.asyncIterator]() { yield* this.#list; }
}

// What takes a callback, and what gives a promise, is what is done at once.
const callbacks = {}, promised = {};
for (const name of Object.keys(sync)) {
  const base = name.slice(0, -4), f = sync[name];
  callbacks[base] = { [base](...args) {
    const done = args.pop();
    if (typeof done !== 'function') throw invalid('cb', 'of type function', done);
    let result, error = null;
    try {
      result = f(...args);
    } catch (e) {
      if (e.code?.startsWith('ERR_INVALID')) throw e;
      error = e;
    }
    const extra = base === 'read' || base === 'write' ? [args[1]] : [];
    io(done, ...(error ? [error] : [null, ...(result === undefined ? [] : [result]), ...extra]));
  } }[base];
  promised[base] = { [base]: (...args) => new Promise((resolve, reject) => {
    let result;
    try {
      result = f(...args);
    } catch (e) {
      return e.code?.startsWith('ERR_INVALID') ? reject(e) : io(reject, e);
    }
    io(resolve, result);
  }) }[base];
}
callbacks.exists = (file, done) => io(done, sync.existsSync(file));
callbacks.realpath.native = callbacks.realpath;

export class FileHandle {
  constructor(fd) { this.fd = fd; }
  #on(name) { return (...args) => promised[name](this.fd, ...args); }
  async read(buffer, ...args) {
    if (!ArrayBuffer.isView(buffer)) [buffer, args] = [buffer?.buffer ?? Buffer.alloc(16384), [buffer ?? {}]];
    return { bytesRead: await promised.read(this.fd, buffer, ...args), buffer };
  }
  async write(data, ...args) { return { bytesWritten: await promised.write(this.fd, data, ...args), buffer: data }; }
  readFile(...a) { return this.#on('readFile')(...a); }
  writeFile(...a) { return this.#on('writeFile')(...a); }
  appendFile(...a) { return this.#on('writeFile')(...a); }
  stat(...a) { return this.#on('fstat')(...a); }
  truncate(...a) { return this.#on('ftruncate')(...a); }
  async sync() {}
  async datasync() {}
  async chmod() {}
  close() { return this.#on('close')(); }
  createReadStream(options) { return new ReadStream(null, { ...options, fd: this.fd }); }
  createWriteStream(options) { return new WriteStream(null, { ...options, fd: this.fd }); }
  async* readLines(options) { yield* (await import('node:readline')).createInterface({ input: this.createReadStream(options) }); }
  [Symbol.asyncDispose]() { return this.close(); }
}

export class ReadStream extends Readable {
  constructor(file, options = {}) {
    if (typeof options === 'string') options = { encoding: options };
    super({ highWaterMark: options.highWaterMark ?? 65536, encoding: options.encoding, emitClose: options.emitClose ?? true, autoDestroy: options.autoClose ?? true, signal: options.signal });
    this.path = file === null ? undefined : named(file);
    this.flags = options.flags ?? 'r';
    this.fd = options.fd?.fd ?? options.fd ?? null;
    this.bytesRead = 0;
    this.start = options.start;
    this.pos = options.start;
    this.end = options.end ?? Infinity;
  }
  _construct(done) {
    io(() => {
      try {
        if (this.fd === null) this.fd = sync.openSync(this.path, this.flags);
      } catch (e) {
        return done(e);
      }
      done();
      this.emit('open', this.fd);
      this.emit('ready');
    });
  }
  _read(n) {
    io(() => {
      if (this.destroyed) return;
      if (this.pos !== undefined) n = Math.min(this.end - this.pos + 1, n);
      else n = Math.min(this.end - this.bytesRead + 1, n);
      if (n <= 0) return this.push(null);
      const b = Buffer.allocUnsafeSlow(n);
      let got;
      try {
        got = sync.readSync(this.fd, b, 0, n, this.pos);
      } catch (e) {
        return this.destroy(e);
      }
      if (this.pos !== undefined) this.pos += got;
      this.bytesRead += got;
      this.push(got === 0 ? null : b.subarray(0, got));
    });
  }
  _destroy(error, done) {
    if (this.fd !== null) {
      try {
        sync.closeSync(this.fd);
      } catch (e) {
        error ??= e;
      }
    }
    this.fd = null;
    io(done, error);
  }
  close(done) { if (done) this.once('close', done); this.destroy(); }
  get pending() { return this.fd === null; }
}

export class WriteStream extends Writable {
  constructor(file, options = {}) {
    if (typeof options === 'string') options = { encoding: options };
    super({ decodeStrings: true, defaultEncoding: options.encoding ?? 'utf8', emitClose: options.emitClose ?? true, autoDestroy: options.autoClose ?? true, signal: options.signal, highWaterMark: options.highWaterMark });
    this.path = file === null ? undefined : named(file);
    this.flags = options.flags ?? 'w';
    this.fd = options.fd?.fd ?? options.fd ?? null;
    this.bytesWritten = 0;
    this.pos = options.start;
  }
  _construct(done) {
    io(() => {
      try {
        if (this.fd === null) this.fd = sync.openSync(this.path, this.flags);
      } catch (e) {
        return done(e);
      }
      done();
      this.emit('open', this.fd);
      this.emit('ready');
    });
  }
  _write(data, _, done) {
    try {
      this.bytesWritten += sync.writeSync(this.fd, data, 0, data.length, this.pos);
      if (this.pos !== undefined) this.pos += data.length;
    } catch (e) {
      return io(done, e);
    }
    io(done);
  }
  _destroy(error, done) {
    if (this.fd !== null) {
      try {
        sync.closeSync(this.fd);
      } catch (e) {
        error ??= e;
      }
    }
    this.fd = null;
    io(done, error);
  }
  close(done) { if (done) this.once('close', done); this.end(); }
  get pending() { return this.fd === null; }
}

const noWatch = () => {
  throw Object.assign(new Error('fs.watch is not available: nothing but the script changes the files of a run'), { code: 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM' });
};
export const constants = {
  F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1, COPYFILE_EXCL: 1, COPYFILE_FICLONE: 2, COPYFILE_FICLONE_FORCE: 4, O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, O_CREAT: 64, O_EXCL: 128, O_TRUNC: 512, O_APPEND: 1024,
  S_IFMT: 0o170000, S_IFREG: 0o100000, S_IFDIR: 0o40000, S_IFLNK: 0o120000, S_IRUSR: 0o400, S_IWUSR: 0o200, S_IXUSR: 0o100, S_IRWXU: 0o700,
};
export const promises = {
  ...promised, constants,
  open: async (...args) => new FileHandle(await promised.open(...args)),
  async* watch() { noWatch(); },
};
for (const name of ['close', 'fstat', 'fchmod', 'fchown', 'fsync', 'fdatasync', 'ftruncate', 'futimes', 'read', 'write', 'readv', 'writev', 'exists']) delete promises[name];
promises.readFile = (file, options) => promised.readFile(file instanceof FileHandle ? file.fd : file, options);
promises.writeFile = async (file, data, options) => {
  if (data !== null && typeof data === 'object' && !ArrayBuffer.isView(data)) {
    const parts = [];
    for await (const part of data) parts.push(typeof part === 'string' ? Buffer.from(part, encodingOf(options)) : part);
    data = Buffer.concat(parts);
  }
  return promised.writeFile(file instanceof FileHandle ? file.fd : file, data, options);
};

const fs = {
  ...sync, ...callbacks, promises, constants, Stats, Dirent, Dir, ReadStream, WriteStream, FileReadStream: ReadStream, FileWriteStream: WriteStream,
  createReadStream: (file, options) => new ReadStream(file, options),
  createWriteStream: (file, options) => new WriteStream(file, options),
  watch: noWatch, watchFile: noWatch, unwatchFile() {},
  F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1,
};
export default fs;
