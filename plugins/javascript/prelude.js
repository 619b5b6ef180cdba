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
// same for all its calls. So it is drawn anew at the first read of standard input
// by std.in.
{
  const { std, Math: math } = globalThis;
  const seeded = () => {
    const seed = new Uint32Array(4);
    const file = std.open('/dev/urandom', 'rb');
    file.read(seed.buffer, 0, seed.byteLength);
    file.close();
    // sfc32 of PractRand, by Chris Doty-Humphrey.
    let [a, b, c, d] = seed;
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
  const input = std.in;
  for (const name of ['readAsString', 'getline', 'getByte', 'read', 'readAsArrayBuffer']) {
    const read = input[name];
    if (typeof read !== 'function') continue;
    Object.defineProperty(input, name, {
      configurable: true, writable: true,
      value(...args) {
        const got = read.apply(input, args);
        math.random = seeded();
        for (const n of Object.getOwnPropertyNames(input)) delete input[n];
        return got;
      },
    });
  }
}
