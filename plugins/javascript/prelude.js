// What scripts expect everywhere and qjs does not have: the rest of console, with
// warnings and errors on standard error, and timers.
{
  const { std, os, console } = globalThis;
  const define = (target, all) => {
    for (const [name, value] of Object.entries(all))
      Object.defineProperty(target, name, { value, writable: true, configurable: true });
  };
  const error = (...args) => {
    std.err.puts(args.map(String).join(' ') + '\n');
  };
  define(console, { info: console.log, debug: console.log, warn: error, error });

  const timer = (set) => (f, ms = 0, ...args) => set(() => f(...args), ms);
  const clear = (unset) => (id) => {
    if (id !== undefined) unset(id);
  };
  define(globalThis, {
    setTimeout: timer(os.setTimeout), clearTimeout: clear(os.clearTimeout),
    setInterval: timer(os.setInterval), clearInterval: clear(os.clearInterval),
  });
}

// QuickJS draws the seed of Math.random when it starts, and a script's start is the
// same for all its calls. So it is drawn anew at the first read of standard input,
// by whatever reads it. A generator that a script put in its place stays.
{
  const { std, os, Math: math } = globalThis;
  const put = (target, name, value) => {
    Object.defineProperty(target, name, { ...Object.getOwnPropertyDescriptor(target, name), value });
  };
  const drawn = () => {
    const seed = new Uint32Array(4);
    const file = std.open('/dev/urandom', 'rb');
    file.read(seed.buffer, 0, seed.byteLength);
    file.close();
    return seed;
  };
  const seeded = () => {
    // sfc32 of PractRand, by Chris Doty-Humphrey.
    let [a, b, c, d] = drawn();
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
  let draw = math.random, waiting = true;
  const undo = [];
  const instead = (target, name, value) => {
    const old = target[name];
    undo.push(() => {
      if (target[name] === value) put(target, name, old);
    });
    put(target, name, value);
  };
  // Standard input was read: what comes now is of one call alone.
  const first = (got) => {
    if (waiting) {
      waiting = false;
      draw = seeded();
      while (undo.length) undo.pop()();
    }
    return got;
  };
  put(math, 'random', { random: () => draw() }.random);

  const file = Object.getPrototypeOf(std.in);
  for (const name of ['readAsString', 'getline', 'getByte', 'read', 'readAsArrayBuffer']) {
    const read = file[name];
    instead(file, name, { [name](...args) {
      const got = read.apply(this, args);
      return waiting && this.fileno() === 0 ? first(got) : got;
    } }[name]);
  }
  // Module os stands as it is, so that another has its name: see files.go.
  instead(globalThis, 'os', Object.assign(Object.create(null), os, {
    read(fd, ...args) {
      const got = os.read(fd, ...args);
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
