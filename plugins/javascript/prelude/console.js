// console prints as Node's does: log, info, debug, table and what counts and measures
// on standard output, warnings, errors, assertions and traces on standard error.
const methods = (() => {
  const { performance } = globalThis;
  const counts = new Map(), starts = new Map();
  const log = (...args) => write(out, format(args));
  const error = (...args) => write(err, format(args));
  const warning = (message) => Reflect.apply(puts, err, [`Warning: ${message}\n`]);

  const duration = (ms) => {
    if (ms < 1000) return `${Number(ms.toFixed(3))}ms`;
    if (ms < 60_000) return `${(ms / 1000).toFixed(3)}s`;
    const hours = Math.floor(ms / 3_600_000), minutes = Math.floor(ms % 3_600_000 / 60_000);
    const [seconds, rest] = (ms % 60_000 / 1000).toFixed(3).split('.');
    const two = (n) => `${n}`.padStart(2, '0');
    return `${hours ? `${hours}:${two(minutes)}` : minutes}:${two(seconds)}.${rest} (${hours ? 'h:m' : ''}m:ss.mmm)`;
  };
  const measured = (method, label, data) => {
    const start = starts.get(label);
    if (start === undefined) return warning(`No such label '${label}' for console.${method}()`);
    log('%s: %s', label, duration(performance.now() - start), ...data);
  };

  const drawn = (head, columns) => {
    const rows = Math.max(...columns.map((c) => c.length));
    const widths = head.map((h, i) => Math.max(widthOf(h), ...Array.from(columns[i], (c) => widthOf(c ?? ''))));
    const row = (cells) => `│ ${cells.map((c, i) => c + ' '.repeat(widths[i] - widthOf(c))).join(' │ ')} │`;
    const line = (left, middle, right) => left + widths.map((w) => '─'.repeat(w + 2)).join(middle) + right;
    const body = Array.from({ length: rows }, (_, r) => row(columns.map((c) => c[r] ?? '')));
    return [line('┌', '┬', '┐'), row(head), line('├', '┼', '┤'), ...body, line('└', '┴', '┘')].join('\n');
  };
  const cell = (v) => inspect(v, {
    depth: v !== null && typeof v === 'object' && !Array.isArray(v) && !ArrayBuffer.isView(v) && Object.keys(v).length > 2 ? -1 : 0,
    maxArrayLength: 3, breakLength: Infinity,
  });
  const isPlain = (v) => v === null || (typeof v !== 'object' && typeof v !== 'function');

  const methods = {
    dir: (v, options) => write(out, inspect(v, { customInspect: false, ...options })),
    clear: () => {},
    group: (...data) => {
      if (data.length > 0) log(...data);
      group.indent += '  ';
    },
    groupEnd: () => { group.indent = group.indent.slice(2); },
    count: (label = 'default') => {
      label = `${label}`;
      counts.set(label, (counts.get(label) ?? 0) + 1);
      log(`${label}: ${counts.get(label)}`);
    },
    countReset: (label = 'default') => {
      label = `${label}`;
      if (!counts.delete(label)) warning(`Count for '${label}' does not exist`);
    },
    time: (label = 'default') => {
      label = `${label}`;
      if (starts.has(label)) warning(`Label '${label}' already exists for console.time()`);
      else starts.set(label, performance.now());
    },
    timeLog: (label = 'default', ...data) => measured('timeLog', `${label}`, data),
    timeEnd: (label = 'default') => {
      label = `${label}`;
      measured('timeEnd', label, []);
      starts.delete(label);
    },
    assert: (holds, ...args) => {
      if (holds) return;
      args[0] = args.length === 0 ? 'Assertion failed' : `Assertion failed: ${args[0]}`;
      error(...args);
    },
    trace: (...args) => {
      const at = {};
      Error.captureStackTrace(at, methods.trace);
      error(`Trace${args.length > 0 ? `: ${format(args)}` : ''}\n${at.stack.trimEnd()}`);
    },
    table: (data, names) => {
      if (data === null || typeof data !== 'object') return log(data);
      if (names !== undefined && !Array.isArray(names)) throw new TypeError('The "properties" argument must be an instance of Array.');
      if (data instanceof Map) {
        return log(drawn(['(iteration index)', 'Key', 'Values'], [[...data].map((_, i) => `${i}`), [...data.keys()].map(cell), [...data.values()].map(cell)]));
      }
      if (data instanceof Set) return log(drawn(['(iteration index)', 'Values'], [[...data].map((_, i) => `${i}`), [...data].map(cell)]));
      const columns = new Map(), values = [], index = Object.keys(data);
      for (const [i, key] of index.entries()) {
        const item = data[key];
        if (names === undefined && isPlain(item)) {
          values[i] = cell(item);
          continue;
        }
        for (const name of names ?? Object.keys(item)) {
          if (!columns.has(name)) columns.set(name, []);
          columns.get(name)[i] = isPlain(item) || !Object.hasOwn(item, name) ? '' : cell(item[name]);
        }
      }
      // Names that are numbers come first, as the keys of any object.
      const sorted = Object.keys(Object.fromEntries(columns));
      const head = ['(index)', ...sorted], body = [index, ...sorted.map((name) => columns.get(name))];
      if (values.length > 0) {
        head.push('Values');
        body.push(values);
      }
      log(drawn(head, body));
    },
  };
  methods.groupCollapsed = methods.group;
  return methods;
})();
