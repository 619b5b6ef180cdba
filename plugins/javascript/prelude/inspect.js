// inspect prints a value as util.inspect of Node 20 does, without colours: its rules
// for lines, columns and names are those of lib/internal/util/inspect.js, and
// testdata/console.txt holds what Node itself printed.
//
// Three things cannot be seen from inside of the language: the state of a promise,
// what is left in an iterator of a Map or Set, and that an object is a Proxy.
const { inspect, format, widthOf } = (() => {
  const { apply, ownKeys, getPrototypeOf } = Reflect;
  const { getOwnPropertyDescriptor: descriptorOf, getOwnPropertySymbols, keys: keysOf, is, hasOwn } = Object;
  const { isArray } = Array;
  const custom = Symbol.for('nodejs.util.inspect.custom');
  const kinds = { object: 0, element: 1, array: 2 };
  const builtIn = new Set(Object.getOwnPropertyNames(globalThis).filter((name) => /^[A-Z][a-zA-Z0-9]+$/.test(name)));

  // Brands: what a getter or method of the class accepts is of the class.
  const getter = (proto, name) => descriptorOf(proto, name).get;
  const brand = (f, ...args) => (v) => {
    try {
      return apply(f, v, args) !== undefined;
    } catch {
      return false;
    }
  };
  const typedTag = getter(getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag);
  const typedLength = getter(getPrototypeOf(Uint8Array.prototype), 'length');
  const isTyped = (v) => apply(typedTag, v, []) !== undefined;
  const isMap = brand(getter(Map.prototype, 'size')), isSet = brand(getter(Set.prototype, 'size'));
  const isDate = brand(Date.prototype.getTime), isRegExp = brand(getter(RegExp.prototype, 'global'));
  const isBuffer = brand(getter(ArrayBuffer.prototype, 'byteLength')), isShared = brand(getter(SharedArrayBuffer.prototype, 'byteLength'));
  const isView = brand(getter(DataView.prototype, 'byteLength'));
  const isWeakSet = brand(WeakSet.prototype.has, {}), isWeakMap = brand(WeakMap.prototype.has, {});
  const boxes = [[Number, 'Number'], [String, 'String'], [Boolean, 'Boolean'], [BigInt, 'BigInt'], [Symbol, 'Symbol']]
    .map(([c, name]) => [brand(c.prototype.valueOf), c.prototype.valueOf, name]);
  const isError = Error.isError;
  const errorText = Error.prototype.toString;
  const tagOf = (v) => apply(Object.prototype.toString, v, []).slice(8, -1);
  const iteratorOf = { 'Map Iterator': getPrototypeOf(new Map().keys()), 'Set Iterator': getPrototypeOf(new Set().keys()) };
  const sourceOf = Function.prototype.toString;
  const generators = [getPrototypeOf(function* () {}), getPrototypeOf(async function* () {})], asyncs = [getPrototypeOf(async () => {}), generators[1]];

  // Texts.
  const meta = ['\\x00', '\\x01', '\\x02', '\\x03', '\\x04', '\\x05', '\\x06', '\\x07', '\\b', '\\t', '\\n', '\\x0B', '\\f', '\\r'];
  const escaped = (c) => {
    const code = c.charCodeAt(0);
    if (c === "'" || c === '\\') return '\\' + c;
    if (code > 0xff) return '\\u' + code.toString(16);
    return meta[code] ?? '\\x' + code.toString(16).toUpperCase().padStart(2, '0');
  };
  const special = /[\x00-\x1f\x27\x5c\x7f-\x9f]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
  const specialButQuotes = /[\x00-\x1f\x5c\x7f-\x9f]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
  const quoted = (s) => {
    if (/^[\x20-\x26\x28-\x5b\x5d-\x7e]*$/.test(s)) return `'${s}'`;
    let mark = "'";
    if (s.includes("'")) {
      if (!s.includes('"')) mark = '"';
      else if (!s.includes('`') && !s.includes('${')) mark = '`';
    }
    return mark + s.replace(mark === "'" ? special : specialButQuotes, escaped) + mark;
  };
  const numeric = (n) => (is(n, -0) ? '-0' : `${n}`);
  const more = (n, what = 'item') => `... ${n} more ${what}${n > 1 ? 's' : ''}`;
  const pad = (n) => ' '.repeat(n);

  const isWide = (c) => c >= 0x1100 && (c <= 0x115f || c === 0x2329 || c === 0x232a || (c >= 0x2e80 && c <= 0x3247 && c !== 0x303f) ||
    (c >= 0x3250 && c <= 0x4dbf) || (c >= 0x4e00 && c <= 0xa4c6) || (c >= 0xa960 && c <= 0xa97c) || (c >= 0xac00 && c <= 0xd7a3) ||
    (c >= 0xf900 && c <= 0xfaff) || (c >= 0xfe10 && c <= 0xfe19) || (c >= 0xfe30 && c <= 0xfe6b) || (c >= 0xff01 && c <= 0xff60) ||
    (c >= 0xffe0 && c <= 0xffe6) || (c >= 0x1f300 && c <= 0x1f64f) || (c >= 0x1f680 && c <= 0x1f6ff) || (c >= 0x1f900 && c <= 0x1f9ff) || (c >= 0x20000 && c <= 0x3fffd));
  const isNarrow = (c) => c <= 0x1f || (c >= 0x7f && c <= 0x9f) || (c >= 0x300 && c <= 0x36f) || (c >= 0x200b && c <= 0x200f) ||
    (c >= 0x20d0 && c <= 0x20ff) || (c >= 0xfe00 && c <= 0xfe0f) || (c >= 0xfe20 && c <= 0xfe2f);
  const widthOf = (s) => {
    if (/^[\x20-\x7e]*$/.test(s)) return s.length;
    let width = 0;
    for (const char of s.replace(/\x1b\[[\d;]*[A-Za-z]/g, '').normalize('NFC')) {
      const c = char.codePointAt(0);
      width += isWide(c) ? 2 : isNarrow(c) ? 0 : 1;
    }
    return width;
  };

  const primitive = (o, v) => {
    switch (typeof v) {
      case 'number': return numeric(v);
      case 'bigint': return `${v}n`;
      case 'string': break;
      default: return String(v);
    }
    let rest = '';
    if (v.length > o.maxStringLength) {
      rest = more(v.length - o.maxStringLength, 'character');
      v = v.slice(0, o.maxStringLength);
    }
    if (v.length <= 16 || v.length <= o.breakLength - o.indent - 4) return quoted(v) + rest;
    return v.split(/(?<=\n)/).map(quoted).join(` +\n${pad(o.indent + 2)}`) + rest;
  };

  const prefixOf = (name, tag, fallback, size = '') => {
    if (name === null) return `[${fallback}${size}: null prototype] ${tag !== '' && fallback !== tag ? `[${tag}] ` : ''}`;
    return `${name}${size} ${tag !== '' && name !== tag ? `[${tag}] ` : ''}`;
  };

  // nameOf is the constructor's name, null without a prototype.
  const nameOf = (o, v, depth) => {
    let first;
    for (let at = v; at; first ??= at) {
      const d = descriptorOf(at, 'constructor');
      if (typeof d?.value === 'function' && d.value.name !== '') {
        try {
          if (v instanceof d.value) return String(d.value.name);
        } catch {} // its prototype is no object
      }
      at = getPrototypeOf(at);
      if (first === undefined && at === null) return null;
    }
    const kind = typeof v === 'function' ? 'Function' : tagOf(v);
    if (depth > o.depth) return `${kind} <Complex prototype>`;
    const of = nameOf(o, first, depth + 1);
    return `${kind} <${of ?? inspect(first, { ...o, customInspect: false, depth: -1 })}>`;
  };

  const functionBase = (f, name, tag) => {
    let base;
    if (/^class[\s{]/.test(apply(sourceOf, f, []))) {
      base = `class ${(hasOwn(f, 'name') && f.name) || '(anonymous)'}`;
      if (name !== 'Function' && name !== null) base += ` [${name}]`;
      if (tag !== '' && name !== tag) base += ` [${tag}]`;
      const parent = name === null ? 'null prototype' : getPrototypeOf(f).name;
      return `[${base}${name === null ? ' extends [null prototype]' : parent ? ` extends ${parent}` : ''}]`;
    }
    const proto = getPrototypeOf(f);
    const kind = `${asyncs.includes(proto) ? 'Async' : ''}${generators.includes(proto) ? 'Generator' : ''}Function`;
    base = `[${kind}${name === null ? ' (null prototype)' : ''}${f.name === '' ? ' (anonymous)' : `: ${f.name}`}]`;
    if (name !== kind && name !== null) base += ` ${name}`;
    return tag !== '' && name !== tag ? `${base} [${tag}]` : base;
  };

  // stackOf is what Error.prototype.stack is in Node: the error, then its frames.
  const stackOf = (e) => {
    const { stack } = e;
    if (!stack) return apply(errorText, e, []);
    const frames = String(stack).trimEnd();
    return frames.startsWith('    at ') ? `${apply(errorText, e, [])}\n${frames}` : frames;
  };
  // sameFrames is where four or more frames are those of a cause as well.
  const sameFrames = (a, b) => {
    for (let i = 0; i < a.length - 3; i++) {
      const at = b.indexOf(a[i]);
      if (at < 0 || b.length - at <= 3) continue;
      let n = 1;
      while (i + n < a.length && at + n < b.length && a[i + n] === b[at + n]) n++;
      if (n > 3) return [i, n];
    }
    return [0, 0];
  };
  const errorBase = (o, e, name, tag, keys) => {
    const called = e.name != null ? String(e.name) : 'Error';
    let stack = stackOf(e);
    for (const key of ['name', 'message', 'stack']) {
      const at = keys.indexOf(key);
      if (!o.showHidden && at >= 0 && stack.includes(e[key])) keys.splice(at, 1);
    }
    if ('cause' in e && !keys.includes('cause')) keys.push('cause');
    if (isArray(e.errors) && !keys.includes('errors')) keys.push('errors');
    let n = called.length;
    if (name === null || (called.endsWith('Error') && stack.startsWith(called) && (stack.length === n || stack[n] === ':' || stack[n] === '\n'))) {
      let fallback = 'Error';
      if (name === null) {
        fallback = (/^([A-Z][a-z_ A-Z0-9[\]()-]+)(?::|\n {4}at)/.exec(stack) || /^([a-z_A-Z0-9-]*Error)$/.exec(stack))?.[1] || '';
        n = fallback.length;
        fallback ||= 'Error';
      }
      const prefix = prefixOf(name, tag, fallback).slice(0, -1);
      if (called !== prefix) {
        if (!prefix.includes(called)) stack = `${prefix} [${called}]${stack.slice(n)}`;
        else stack = n === 0 ? `${prefix}: ${stack}` : prefix + stack.slice(n);
      }
    }
    let at = (e.message && stack.indexOf(e.message)) || -1;
    if (at !== -1) at += e.message.length;
    const start = stack.indexOf('\n    at', at);
    if (start === -1) {
      stack = `[${stack}]`;
    } else if (isError(e.cause)) {
      const frames = stack.slice(start + 1).split('\n'), cause = stackOf(e.cause);
      const theirs = cause.indexOf('\n    at');
      const [from, same] = theirs < 0 ? [0, 0] : sameFrames(frames, cause.slice(theirs + 1).split('\n'));
      if (same > 0) frames.splice(from + 1, same - 2, `    ... ${same - 2} lines matching cause stack trace ...`);
      stack = stack.slice(0, start + 1) + frames.join('\n');
    }
    return o.indent === 0 ? stack : stack.replaceAll('\n', `\n${pad(o.indent)}`);
  };

  const deeper = (o, f) => {
    o.indent += 2;
    const out = f();
    o.indent -= 2;
    return out;
  };

  const property = (o, v, depth, key, kind) => {
    const d = descriptorOf(v, key) ?? { value: v[key], enumerable: true };
    let text;
    if (d.value !== undefined) text = deeper(o, () => any(o, d.value, depth));
    else if (d.get !== undefined) text = d.set !== undefined ? '[Getter/Setter]' : '[Getter]';
    else text = d.set !== undefined ? '[Setter]' : 'undefined';
    if (kind === kinds.element) return text;
    if (typeof key === 'symbol') return `[${key.toString().replace(special, escaped)}]: ${text}`;
    if (key === '__proto__') return `['__proto__']: ${text}`;
    if (d.enumerable === false) return `[${key.replace(special, escaped)}]: ${text}`;
    return `${/^[a-zA-Z_][a-zA-Z_0-9]*$/.test(key) ? key : quoted(key)}: ${text}`;
  };

  const elements = (o, v, depth) => {
    const n = Math.min(Math.max(0, o.maxArrayLength), v.length), out = [];
    let index = 0;
    const empty = (count) => out.push(`<${count} empty item${count > 1 ? 's' : ''}>`);
    while (out.length < n && index < v.length) {
      if (hasOwn(v, index)) {
        out.push(property(o, v, depth, index++, kinds.element));
        continue;
      }
      // A hole: to the next index that is there.
      const next = keysOf(v).map(Number).find((k) => k > index && k < 2 ** 32 - 1) ?? v.length;
      empty(next - index);
      index = next;
    }
    if (index < v.length) out.push(more(v.length - index));
    return out;
  };
  const entries = (o, v, size, one) => deeper(o, () => {
    const n = Math.min(Math.max(0, o.maxArrayLength), size), out = [];
    for (const entry of v) {
      if (out.length >= n) break;
      out.push(one(entry));
    }
    if (size > n) out.push(more(size - n));
    return out;
  });
  const bytes = (o, v) => {
    const all = new Uint8Array(v), n = Math.min(Math.max(0, o.maxArrayLength), all.length);
    const text = Array.from(all.subarray(0, n), (b) => b.toString(16).padStart(2, '0')).join(' ');
    return [`[Uint8Contents]: <${text}${all.length > n ? ` ${more(all.length - n, 'byte')}` : ''}>`];
  };

  const any = (o, v, depth, inView) => {
    if ((typeof v !== 'object' && typeof v !== 'function') || v === null) return primitive(o, v);
    if (o.customInspect) {
      const own = v[custom];
      if (typeof own === 'function' && own !== inspect && !(v.constructor && v.constructor.prototype === v)) {
        const said = apply(own, v, [o.depth === Infinity ? null : o.depth - depth, { ...o, stylize: String }, inspect]);
        if (said !== v) return typeof said === 'string' ? said.replaceAll('\n', `\n${pad(o.indent)}`) : any(o, said, depth);
      }
    }
    if (o.seen.includes(v)) {
      if (!o.circular.has(v)) o.circular.set(v, o.circular.size + 1);
      return `[Circular *${o.circular.get(v)}]`;
    }
    return object(o, v, depth, inView);
  };

  const object = (o, v, depth, inView) => {
    const name = nameOf(o, v, depth);
    let tag = v[Symbol.toStringTag];
    // Without a tag the language says what it is; else the brands are tried, which is slow.
    const sure = typeof tag === 'string' ? undefined : tagOf(v);
    const isOf = (kind, test) => (sure === undefined ? test(v) : sure === kind);
    const many = name === null || Symbol.iterator in v;
    if (typeof tag !== 'string' || (tag !== '' && (o.showHidden ? hasOwn(v, Symbol.toStringTag) : descriptorOf(v, Symbol.toStringTag)?.enumerable))) tag = '';
    const own = (indices) => {
      const names = o.showHidden ? Object.getOwnPropertyNames(v) : keysOf(v);
      const symbols = getOwnPropertySymbols(v);
      let from = 0; // indices come first of all names
      if (!indices) for (from = names.length; from > 0 && !/^(0|[1-9]\d*)$/.test(names[from - 1]);) from--;
      return names.slice(from).concat(o.showHidden ? symbols : symbols.filter((s) => descriptorOf(v, s)?.enumerable));
    };
    let keys, base = '', open = '{', close = '}', kind = kinds.object, list = () => [];
    const listed = (fallback, size, bracket) => {
      const prefix = bracket === '[' && name === 'Array' && tag === '' ? '' : prefixOf(name, tag, fallback, `(${size})`);
      keys = own(bracket === '{');
      if (bracket === '[') [close, kind] = [']', kinds.array];
      open = prefix + bracket;
      return size === 0 && keys.length === 0;
    };
    const over = () => keys.length === 0;
    const braced = (fallback) => { open = `${prefixOf(name, tag, fallback)}{`; };
    const iterator = many ? Object.keys(iteratorOf).find((k) => getPrototypeOf(v) === iteratorOf[k]) : undefined;
    if (isArray(v)) {
      if (listed('Array', v.length, '[')) return `${open}]`;
      list = () => elements(o, v, depth + 1);
    } else if (many && isOf('Set', isSet)) {
      const { size } = v;
      if (listed('Set', size, '{')) return `${open}}`;
      list = () => entries(o, Set.prototype.values.call(v), size, (e) => any(o, e, depth + 1));
    } else if (many && isOf('Map', isMap)) {
      const { size } = v;
      if (listed('Map', size, '{')) return `${open}}`;
      list = () => entries(o, Map.prototype.entries.call(v), size, ([k, e]) => `${any(o, k, depth + 1)} => ${any(o, e, depth + 1)}`);
    } else if (many && isTyped(v)) {
      const size = apply(typedLength, v, []);
      if (listed(apply(typedTag, v, []), size, '[') && !o.showHidden) return `${open}]`;
      list = () => {
        const n = Math.min(Math.max(0, o.maxArrayLength), size), out = [];
        for (let i = 0; i < n; i++) out.push(primitive(o, v[i]));
        if (size > n) out.push(more(size - n));
        return out;
      };
    } else if (iterator !== undefined) {
      keys = own(true);
      open = `[${tag !== iterator && tag !== '' ? `${tag}] [` : ''}${iterator}] {`;
      list = () => ['<items unknown>'];
    } else {
      keys = own(true);
      if (typeof v === 'function') {
        base = functionBase(v, name, tag);
        if (over()) return base;
      } else if (tagOf(v) === 'Arguments' && tag === '' && name === 'Object') {
        open = '[Arguments] {';
        if (over()) return `${open}}`;
      } else if (name === 'Object' && !isError(v)) {
        if (tag !== '') braced('Object');
        if (over()) return `${open}}`;
      } else if (isOf('RegExp', isRegExp)) {
        base = RegExp.prototype.toString.call(v);
        const prefix = prefixOf(name, tag, 'RegExp');
        if (prefix !== 'RegExp ') base = prefix + base;
        if (over() || depth > o.depth) return base;
      } else if (isOf('Date', isDate)) {
        base = Number.isNaN(Date.prototype.getTime.call(v)) ? 'Invalid Date' : Date.prototype.toISOString.call(v);
        const prefix = prefixOf(name, tag, 'Date');
        if (prefix !== 'Date ') base = prefix + base;
        if (over()) return base;
      } else if (isError(v)) {
        base = errorBase(o, v, name, tag, keys);
        if (over()) return base;
      } else if (sure === undefined && (isBuffer(v) || isShared(v))) {
        const prefix = prefixOf(name, tag, isBuffer(v) ? 'ArrayBuffer' : 'SharedArrayBuffer');
        if (!inView) list = () => bytes(o, v);
        else if (over()) return `${prefix}{ byteLength: ${v.byteLength} }`;
        open = `${prefix}{`;
        keys.unshift('byteLength');
      } else if (sure === undefined && isView(v)) {
        braced('DataView');
        keys.unshift('byteLength', 'byteOffset', 'buffer');
      } else if (v instanceof Promise) {
        braced('Promise');
        list = () => ['<state unknown>'];
      } else if (sure === undefined && (isWeakSet(v) || isWeakMap(v))) {
        braced(isWeakSet(v) ? 'WeakSet' : 'WeakMap');
        list = () => ['<items unknown>'];
      } else {
        const box = boxes.find(([is, , kind]) => isOf(kind, is));
        if (box !== undefined) {
          const [, valueOf, called] = box;
          if (called === 'String') keys.splice(0, v.length);
          base = `[${called}${called !== name ? (name === null ? ' (null prototype)' : ` (${name})`) : ''}: ${primitive(o, apply(valueOf, v, []))}]`;
          if (tag !== '' && tag !== name) base += ` [${tag}]`;
          if (over()) return base;
        } else {
          const fallback = name === null ? tagOf(v) : '';
          braced(fallback === tag ? 'Object' : fallback);
          if (over()) return `${open}}`;
        }
      }
    }
    if (depth > o.depth) {
      const fallback = name === null ? tagOf(v) : '';
      const called = prefixOf(name, tag, fallback === tag ? 'Object' : fallback).slice(0, -1);
      return name === null ? called : `[${called}]`;
    }
    o.seen.push(v);
    o.current = depth + 1;
    const { indent } = o;
    let out;
    try {
      out = list();
      for (const key of keys) out.push(property(o, v, depth + 1, key, kind));
    } catch (e) {
      if (!(e instanceof RangeError && /call stack/.test(e.message))) throw e;
      o.seen.pop();
      o.indent = indent;
      return `[${prefixOf(name, tag, 'Object').slice(0, -1)}: Inspection interrupted prematurely. Maximum call stack size exceeded.]`;
    }
    if (o.circular.has(v)) base = `<ref *${o.circular.get(v)}>${base && ` ${base}`}`;
    o.seen.pop();
    return joined(o, out, base, open, close, kind, depth + 1, v);
  };

  // columns puts the elements of an array below each other.
  const columns = (o, out, v) => {
    const n = out.length - (o.maxArrayLength < out.length ? 1 : 0); // without "... n more items"
    const widths = out.slice(0, n).map(widthOf);
    const longest = Math.max(...widths), total = widths.reduce((a, b) => a + b + 2, 0), max = longest + 2;
    if (max * 3 + o.indent >= o.breakLength || (total / max <= 5 && longest > 6)) return out;
    const biased = Math.max(max - 3 - Math.sqrt(max - total / out.length), 1);
    const count = Math.min(Math.round(Math.sqrt(2.5 * biased * n) / biased), Math.floor((o.breakLength - o.indent) / max), 12, 15);
    if (count <= 1) return out;
    const wide = [];
    for (let i = 0; i < count; i++) {
      let w = 0;
      for (let j = i; j < out.length; j += count) if (widths[j] > w) w = widths[j];
      wide.push(w + 2);
    }
    const numbers = v !== undefined && out.every((_, i) => typeof v[i] === 'number' || typeof v[i] === 'bigint');
    const lines = [];
    for (let i = 0; i < n; i += count) {
      const end = Math.min(i + count, n);
      let line = '';
      for (let j = i; j < end; j++) {
        const last = j === end - 1, text = last ? out[j] : `${out[j]}, `;
        const fill = pad(Math.max(0, wide[j - i] - widths[j] - 2));
        line += numbers ? fill + text : last ? text : text + fill;
      }
      lines.push(line);
    }
    if (n < out.length) lines.push(out[n]);
    return lines;
  };

  const joined = (o, out, base, open, close, kind, depth, v) => {
    const n = out.length;
    if (kind === kinds.array && n > 6) out = columns(o, out, v);
    if (o.current - depth < 3 && n === out.length) {
      let total = out.length + out.length + o.indent + open.length + base.length + 10;
      if (total + out.length <= o.breakLength) {
        for (const text of out) total += text.length;
        const line = out.join(', ');
        if (total <= o.breakLength && !base.includes('\n') && !line.includes('\n')) return `${base && `${base} `}${open} ${line} ${close}`;
      }
    }
    const start = `\n${pad(o.indent)}`;
    return `${base && `${base} `}${open}${start}  ${out.join(`,${start}  `)}${start}${close}`;
  };

  const inspect = (v, opts) => {
    const o = { depth: 2, breakLength: 80, maxArrayLength: 100, maxStringLength: 10000, showHidden: false, customInspect: true, ...opts, indent: 0, seen: [], circular: new Map(), current: 0 };
    for (const limit of ['depth', 'maxArrayLength', 'maxStringLength']) o[limit] ??= Infinity;
    return any(o, v, 0);
  };

  // plainText: whether toString of an object is the language's own.
  const plainText = (v) => {
    if (typeof v.toString !== 'function') return typeof v[Symbol.toPrimitive] !== 'function';
    if (hasOwn(v, 'toString') || hasOwn(v, Symbol.toPrimitive)) return false;
    let at = v;
    do at = getPrototypeOf(at); while (!hasOwn(at, 'toString') && !hasOwn(at, Symbol.toPrimitive));
    const d = descriptorOf(at, 'constructor');
    return typeof d?.value === 'function' && builtIn.has(d.value.name);
  };
  const json = (v) => {
    try {
      return JSON.stringify(v);
    } catch (e) {
      if (e instanceof TypeError && e.message === 'circular reference') return '[Circular]';
      throw e;
    }
  };
  const number = (v, read) => (typeof v === 'symbol' ? 'NaN' : typeof v === 'bigint' ? `${v}n` : numeric(read(v)));
  const directives = {
    s: (v) => {
      if (typeof v === 'number' || typeof v === 'bigint') return primitive(null, v);
      return typeof v !== 'object' || v === null || !plainText(v) ? String(v) : inspect(v, { depth: 0 });
    },
    j: json,
    d: (v) => number(v, Number),
    i: (v) => number(v, parseInt),
    f: (v) => (typeof v === 'symbol' ? 'NaN' : numeric(parseFloat(v))),
    o: (v) => inspect(v, { showHidden: true, depth: 4 }),
    O: (v) => inspect(v),
    c: () => '',
  };
  const format = (args) => {
    let next = 0, text = '';
    if (typeof args[0] === 'string') {
      if (args.length === 1) return args[0];
      next = 1;
      text = args[0].replace(/%[sjdifoOc%]/g, (found) => {
        if (found === '%%') return '%';
        return next < args.length ? directives[found[1]](args[next++]) : found;
      });
    } else if (args.length > 0) {
      text = inspect(args[next++]);
    }
    for (; next < args.length; next++) text += ` ${typeof args[next] === 'string' ? args[next] : inspect(args[next])}`;
    return text;
  };
  return { inspect, format, widthOf };
})();
