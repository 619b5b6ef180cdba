// What a script starts with. The rest of the prelude, which prints values, formats
// for languages and explains errors, is compiled code in memory until something of
// it is used: a start does not make it, and the end of a run has nothing of it to free.
const { rest, write, group } = (() => {
  const { std, bjson } = globalThis;
  const { apply } = Reflect;
  const { evalScript, out, err } = std;
  const { read, READ_OBJ_BYTECODE } = bjson;
  const { puts, flush } = Object.getPrototypeOf(out);
  const group = { indent: '' };
  const write = (to, text) => {
    if (group.indent !== '') text = group.indent + (text.includes('\n') ? text.replaceAll('\n', `\n${group.indent}`) : text);
    apply(puts, to, [`${text.toWellFormed()}\n`]);
    apply(flush, to, []);
  };
  const held = std.loadFile('/lib/rest.bin', { binary: true }).buffer;
  let made;
  const rest = () => made ??= evalScript(read(held, 0, held.byteLength, READ_OBJ_BYTECODE), { eval_function: true })({ out, err, puts, write, group });
  return { rest, write, group };
})();

// A text alone, which most lines are, is written as it is.
{
  const { std, os, console } = globalThis;
  const { apply } = Reflect;
  const { out, err } = std;
  const define = (target, all) => {
    for (const name in all) Object.defineProperty(target, name, { value: all[name], writable: true, configurable: true });
  };
  const to = (file) => (...args) => write(file, args.length === 1 && typeof args[0] === 'string' ? args[0] : rest().format(args));
  const log = to(out), error = to(err);
  define(console, { log, info: log, debug: log, dirxml: log, error, warn: error });
  for (const name of ['assert', 'clear', 'count', 'countReset', 'dir', 'group', 'groupEnd', 'groupCollapsed', 'table', 'time', 'timeEnd', 'timeLog', 'trace'])
    define(console, { [name]: (...args) => rest().console[name](...args) });

  // QuickJS takes any language and any option, and ignores them. See locale.js.
  for (const [kind, target, names] of [
    ['number', Number.prototype, ['toLocaleString']], ['bigint', BigInt.prototype, ['toLocaleString']],
    ['list', Array.prototype, ['toLocaleString']], ['list', Object.getPrototypeOf(Uint8Array.prototype), ['toLocaleString']],
    ['date', Date.prototype, ['toLocaleString', 'toLocaleDateString', 'toLocaleTimeString']],
    ['text', String.prototype, ['localeCompare', 'toLocaleUpperCase', 'toLocaleLowerCase']],
  ]) {
    for (const name of names) {
      const own = target[name];
      const called = { [name](...args) {
        return rest().locale[kind](this, args, { name, own, called });
      } }[name];
      define(target, { [name]: called });
    }
  }

  // qjs prints an error that nobody caught by Error.prototype.toString and the frames
  // after it. A call by qjs itself, and no other, has no frame.
  const { Error } = globalThis;
  const { captureStackTrace, isError } = Error;
  const own = Error.prototype.toString;
  const { toString } = { toString() {
    const text = apply(own, this, []);
    if (!isError(this) || !(Error.stackTraceLimit >= 1)) return text;
    const caller = {};
    apply(captureStackTrace, Error, [caller, toString]);
    return caller.stack === '' ? rest().told(this, text) : text;
  } };
  define(Error.prototype, { toString });

  // Timers of the platform, which wait a millisecond at least.
  const timer = (set) => (f, ms = 0, ...args) => set(() => f(...args), ms >= 1 ? ms : 1);
  const clear = (unset) => (id) => {
    if (id !== undefined) unset(id);
  };
  define(globalThis, {
    setTimeout: timer(os.setTimeout), clearTimeout: clear(os.clearTimeout),
    setInterval: timer(os.setInterval), clearInterval: clear(os.clearInterval),
  });
}

// A program of the command line begins in its skill's folder.
{
  const { std, os } = globalThis;
  const folder = std.getenv('PWD');
  if (folder && folder.startsWith('/skills/')) os.chdir(folder);
}

// QuickJS draws the seed of Math.random when it starts, and a script's start is the
// same for all its calls. So it is drawn anew at the first read of standard input,
// by whatever reads it. A generator that a script put in its place stays. All that is
// used at that read is taken here, because the script may have put others in its place.
{
  const { std, os, Math: math, Uint32Array } = globalThis;
  const { apply } = Reflect;
  const { defineProperty, getPrototypeOf } = Object;
  const file = getPrototypeOf(std.in);
  const { read, close, fileno } = file;
  const { open } = std;
  const start = math.random;
  const put = (target, name, value) => defineProperty(target, name, { __proto__: null, value });
  const seeded = () => {
    const seed = new Uint32Array(4);
    const chance = open('/dev/urandom', 'rb');
    if (!chance) return start; // all descriptors are taken
    apply(read, chance, [seed.buffer, 0, 16]);
    apply(close, chance, []);
    // sfc32 of PractRand, by Chris Doty-Humphrey.
    let a = seed[0], b = seed[1], c = seed[2], d = seed[3];
    const next = () => {
      const t = (((a + b) | 0) + d) | 0;
      d = (d + 1) | 0;
      a = b ^ (b >>> 9);
      b = (c + (c << 3)) | 0;
      c = (((c << 21) | (c >>> 11)) + t) | 0;
      return t >>> 0;
    };
    return () => (next() * 0x200000 + (next() >>> 11)) / 0x20000000000000;
  };
  let draw = start, waiting = true;
  let undo = () => {};
  const instead = (target, name, value) => {
    const old = target[name], others = undo;
    undo = () => {
      try {
        if (target[name] === value) put(target, name, old);
      } catch {} // it was frozen
      others();
    };
    put(target, name, value);
  };
  // Standard input was read: what comes now is of one call alone.
  const first = (got) => {
    if (waiting) {
      waiting = false;
      draw = seeded();
      undo();
    }
    return got;
  };
  put(math, 'random', { random: () => draw() }.random);

  for (const name of ['readAsString', 'getline', 'getByte', 'read', 'readAsArrayBuffer']) {
    const own = file[name];
    instead(file, name, { [name](...args) {
      const got = apply(own, this, args);
      return waiting && apply(fileno, this, []) === 0 ? first(got) : got;
    } }[name]);
  }
  // Module os stands as it is, so that another has its name: see files.go.
  instead(globalThis, 'os', Object.assign(Object.create(null), os, {
    read(fd, buffer, offset, length) {
      const got = os.read(fd, buffer, offset, length);
      return fd === 0 && got >= 0 ? first(got) : got;
    },
    setReadHandler(fd, handler) {
      if (fd !== 0 || !waiting || typeof handler !== 'function') return os.setReadHandler(fd, handler);
      // The wait for input ends in a call, and timers may come before the handler.
      draw = () => seeded()();
      return os.setReadHandler(fd, () => first() || handler());
    },
  }));
}
