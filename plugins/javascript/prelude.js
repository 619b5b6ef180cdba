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
