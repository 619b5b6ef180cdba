// What scripts expect everywhere and QuickJS-ng's qjs does not have: the rest of
// console, with warnings and errors on standard error, and timers.
{
  const { std, os } = globalThis;
  const say = (file) => (...args) => {
    file.puts(args.map(String).join(' ') + '\n');
    file.flush();
  };
  const hidden = (target, all) => {
    for (const [name, value] of Object.entries(all))
      Object.defineProperty(target, name, { value, writable: true, configurable: true });
  };
  const out = say(std.out), err = say(std.err);
  const timer = (set) => (f, ms = 0, ...args) => set(() => f(...args), ms);
  hidden(console, { log: out, info: out, debug: out, warn: err, error: err, trace: err });
  hidden(globalThis, {
    setTimeout: timer(os.setTimeout), clearTimeout: os.clearTimeout,
    setInterval: timer(os.setInterval), clearInterval: os.clearInterval,
  });
}
