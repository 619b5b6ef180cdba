// The loader of modules: CommonJS by functions, ES modules by QuickJS itself, which finds a
// module by the name that it was read under. A file is compiled once, and its code read back
// under its own name: evalScript knows no other way to name what it compiles.
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { transform } from 'sucrase';
import { parse } from 'sucrase/dist/esm/parser/index.js';
import { TokenType as tt } from 'sucrase/dist/esm/parser/tokenizer/types.js';
import { latin1 } from './natives.mjs';

const { std, os, bjson } = globalThis;
const { evalScript } = std;
const unnamed = '<evalScript>';

const maxModules = 10_000;
const maxSource = 16 << 20; // of one file
const maxTransform = 2 << 20; // of a file in TypeScript
const maxPackage = 1 << 20; // of a package.json

const coded = (error, code) => Object.assign(error, { code });
const builtins = new Map(); // name → what makes it
const cache = Object.create(null);

// The folders above an absolute path: node:path looks at each character.
const above = (file) => file.slice(0, file.lastIndexOf('/')) || '/';
const within = (folder, name) => (folder === '/' ? `/${name}` : `${folder}/${name}`);
const ofPackages = (folder) => folder.endsWith('/node_modules');

// Files, as the loader looks at them.
const kindOf = (file) => {
  const [s, errno] = os.stat(file);
  if (errno !== 0) return undefined;
  const kind = s.mode & os.S_IFMT;
  return kind === os.S_IFREG ? 'file' : kind === os.S_IFDIR ? 'folder' : undefined;
};
const sizeOf = (file) => os.stat(file)[0]?.size ?? 0;
const textOf = (file) => {
  if (sizeOf(file) > maxSource) throw coded(new Error(`${file} has more than ${maxSource} bytes`), 'ERR_MODULE_TOO_LARGE');
  const text = std.loadFile(file);
  if (text === null) throw coded(new Error(`ENOENT: no such file or directory, open '${file}'`), 'ENOENT');
  return text.startsWith('\ufeff') ? text.slice(1) : text;
};

// package.json
const packages = new Map();
const packageAt = (folder) => {
  let found = packages.get(folder);
  if (found !== undefined) return found;
  const file = within(folder, 'package.json');
  found = null;
  if (kindOf(file) === 'file') {
    if (sizeOf(file) > maxPackage) throw coded(new Error(`Invalid package config ${file}: it has more than ${maxPackage} bytes`), 'ERR_INVALID_PACKAGE_CONFIG');
    try {
      const json = JSON.parse(textOf(file));
      found = json !== null && typeof json === 'object' ? { folder, json } : { folder, json: {} };
    } catch (e) {
      throw coded(new Error(`Invalid package config ${file}. ${e.message}`), 'ERR_INVALID_PACKAGE_CONFIG');
    }
  }
  packages.set(folder, found);
  return found;
};
const scopeOf = (file) => {
  for (let folder = above(file); ; folder = above(folder)) {
    if (!ofPackages(folder)) {
      const p = packageAt(folder);
      if (p) return p;
    }
    if (folder === '/') return null;
  }
};

// Conditions of "exports" and "imports".
const conditionsOf = (esm) => ['node', esm ? 'import' : 'require', 'module-sync', 'default'];
const target = (p, value, star, esm, name) => {
  if (typeof value === 'string') {
    if (!value.startsWith('./')) {
      if (name.startsWith('#') && !value.startsWith('../') && !value.startsWith('/')) return { bare: star === undefined ? value : value.replaceAll('*', star) };
      throw coded(new Error(`Invalid "exports" target ${JSON.stringify(value)} defined for '${name}' in the package config ${p.folder}/package.json`), 'ERR_INVALID_PACKAGE_TARGET');
    }
    const file = path.join(p.folder, star === undefined ? value : value.replaceAll('*', star));
    if (!file.startsWith(`${p.folder}/`) || /(?:^|\/)(?:\.\.?|node_modules)(?:\/|$)/.test((star === undefined ? value : value.replaceAll('*', star)).slice(2))) {
      throw coded(new Error(`Invalid "exports" target ${JSON.stringify(value)} defined for '${name}' in the package config ${p.folder}/package.json`), 'ERR_INVALID_PACKAGE_TARGET');
    }
    return { file };
  }
  if (Array.isArray(value)) {
    for (const v of value) {
      const found = target(p, v, star, esm, name);
      if (found) return found;
    }
    return undefined;
  }
  if (value === null || typeof value !== 'object') return undefined;
  const wanted = conditionsOf(esm);
  for (const [condition, v] of Object.entries(value)) {
    if (!wanted.includes(condition)) continue;
    const found = target(p, v, star, esm, name);
    if (found) return found;
  }
  return undefined;
};
const mapped = (p, map, name, esm) => {
  if (Object.hasOwn(map, name) && !name.includes('*')) return target(p, map[name], undefined, esm, name);
  let best;
  for (const key of Object.keys(map)) {
    const [head, tail] = key.split('*');
    if (tail === undefined || !name.startsWith(head) || !name.endsWith(tail) || name.length < head.length + tail.length) continue;
    if (best === undefined || head.length > best.head.length) best = { key, head, star: name.slice(head.length, name.length - tail.length) };
  }
  return best && target(p, map[best.key], best.star, esm, name);
};

const endings = ['', '.js', '.json', '.node', '.cjs', '.mjs', '.ts', '.tsx', '.mts', '.cts'];
const written = { '.js': ['.ts', '.tsx'], '.mjs': ['.mts'], '.cjs': ['.cts'], '.jsx': ['.tsx'] };
const asFile = (file) => {
  for (const ending of endings) if (kindOf(file + ending) === 'file') return file + ending;
  const ending = path.extname(file);
  for (const other of written[ending] ?? []) {
    const ts = file.slice(0, -ending.length) + other;
    if (kindOf(ts) === 'file') return ts;
  }
  return undefined;
};
const asFolder = (folder) => {
  if (kindOf(folder) !== 'folder') return undefined;
  const main = packageAt(folder)?.json.main;
  if (typeof main === 'string' && main !== '') {
    const file = path.resolve(folder, main);
    const found = asFile(file) ?? asFile(path.join(file, 'index'));
    if (found) return found;
  }
  return asFile(path.join(folder, 'index'));
};
const asPath = (file) => asFile(file) ?? asFolder(file);

const noModule = (name, parent, esm) => {
  if (esm) return coded(new Error(`Cannot find ${/^[./]/.test(name) ? `module '${path.resolve(path.dirname(parent), name)}'` : `package '${name}'`} imported from ${parent}`), 'ERR_MODULE_NOT_FOUND');
  const stack = [parent];
  for (let m = cache[parent]?.parent; m && !stack.includes(m.filename); m = m.parent) stack.push(m.filename);
  return Object.assign(coded(new Error(`Cannot find module '${name}'\nRequire stack:\n${stack.map((file) => `- ${file}`).join('\n')}`), 'MODULE_NOT_FOUND'), { requireStack: stack });
};
const notExported = (p, sub) => coded(new Error(sub === '.' ? `No "exports" main defined in ${p.folder}/package.json` : `Package subpath '${sub}' is not defined by "exports" in ${p.folder}/package.json`), 'ERR_PACKAGE_PATH_NOT_EXPORTED');

const inPackage = (p, sub, esm) => {
  const exports = p.json.exports;
  const map = typeof exports === 'string' || Array.isArray(exports) || Object.keys(exports).every((k) => !k.startsWith('.')) ? { '.': exports } : exports;
  const found = mapped(p, map, sub, esm);
  if (!found) throw notExported(p, sub);
  return found.file;
};

// resolve gives the file that a name means in a file; { builtin } for Node's own modules.
const resolve = (name, parent, esm) => {
  if (name.startsWith('node:')) {
    if (builtins.has(name.slice(5))) return { builtin: name.slice(5) };
    throw coded(new Error(`No such built-in module: ${name}`), 'ERR_UNKNOWN_BUILTIN_MODULE');
  }
  if (name.startsWith('qjs:')) return { native: name };
  if (name.startsWith('file:')) name = fileURLToPath(name);
  if (/^(?:\.{0,2}\/|\.{1,2}$)/.test(name)) {
    const file = path.resolve(path.dirname(parent), name);
    const found = name.endsWith('/') ? asFolder(file) : asPath(file);
    if (found) return { file: found };
    throw noModule(name, parent, esm);
  }
  if (builtins.has(name)) return { builtin: name };
  if (name.startsWith('#')) {
    const p = scopeOf(parent);
    const found = p?.json.imports && mapped(p, p.json.imports, name, esm);
    if (found?.bare) return resolve(found.bare, parent, esm);
    if (found) return existing(found.file, name, parent, esm);
    throw coded(new TypeError(`Package import specifier "${name}" is not defined in package ${p ? `${p.folder}/package.json` : ''} imported from ${parent}`), 'ERR_PACKAGE_IMPORT_NOT_DEFINED');
  }
  const [, pkg, rest] = /^((?:@[^/]+\/)?[^/]+)(\/.*)?$/.exec(name) ?? [];
  if (pkg === undefined) throw noModule(name, parent, esm);
  const own = scopeOf(parent);
  if (own?.json.name === pkg && own.json.exports) return existing(inPackage(own, `.${rest ?? ''}`, esm), name, parent, esm);
  for (let folder = above(parent); ; folder = above(folder)) {
    const at = path.join(folder, 'node_modules', pkg);
    if (!ofPackages(folder) && kindOf(at) === 'folder') {
      const p = packageAt(at);
      if (p?.json.exports !== undefined && p.json.exports !== null) return existing(inPackage(p, `.${rest ?? ''}`, esm), name, parent, esm);
      const found = rest ? asPath(at + rest) : asFolder(at);
      if (found) return { file: found };
    }
    if (folder === '/') throw noModule(name, parent, esm);
  }
};
const existing = (file, name, parent, esm) => {
  if (kindOf(file) === 'file') return { file };
  throw esm ? coded(new Error(`Cannot find module '${file}' imported from ${parent}`), 'ERR_MODULE_NOT_FOUND') : noModule(name, parent, esm);
};

// kind says how a file is to be read: json, commonjs, module, or either, by what is in it.
const formatOf = (file) => {
  switch (path.extname(file)) {
    case '.json': return 'json';
    case '.mjs': case '.mts': return 'module';
    case '.cjs': case '.cts': return 'commonjs';
    case '.node': throw coded(new Error(`${file}: native add-ons do not run in the sandbox`), 'ERR_DLOPEN_FAILED');
  }
  const type = scopeOf(file)?.json.type;
  return type === 'module' || type === 'commonjs' ? type : 'either';
};

// places are those of a word in a text where a pattern fits that is sticky. To find the word by
// split takes QuickJS a tenth of the time of indexOf, and a fortieth of a pattern's alone.
const places = function* (text, word, pattern) {
  const parts = text.split(word);
  for (let i = 1, at = 0; i < parts.length; i++, at += word.length) {
    pattern.lastIndex = at += parts[i - 1].length;
    const found = pattern.exec(text);
    if (found) yield found;
  }
};
const has = (text, word, pattern) => places(text, word, pattern).next().value !== undefined;
const looksLikeModule = (text) => has(text, 'import', /(?<=^\s*)import\b\s*(?:[\w${*'"]|\/\*)|\bimport\.meta\b/my)
  || has(text, 'export', /(?<=^\s*)export\s*(?:[{*]|default\b|const\b|let\b|var\b|function\b|class\b|async\b|type\b|interface\b|enum\b|abstract\b|declare\b)/my);

// sources has the text of what was compiled, to show the line of an error.
const sources = new Map();

// source gives the text of a file as JavaScript; lines stay where they are.
const source = (file) => {
  let text = textOf(file);
  sources.set(file, file);
  if (/\.(?:tsx?|[mc]ts|jsx)$/.test(file)) {
    if (text.length > maxTransform) throw coded(new Error(`${file} has more than ${maxTransform} characters of TypeScript`), 'ERR_MODULE_TOO_LARGE');
    try {
      text = transform(text, {
        transforms: [...(/x$/.test(file) ? ['jsx'] : []), ...(file.endsWith('.jsx') ? [] : ['typescript'])], disableESTransforms: true, production: true, filePath: file, jsxRuntime: 'classic',
      }).code;
    } catch (e) {
      const [, line, column] = /\((\d+):(\d+)\)\s*$/.exec(e.message) ?? [];
      throw placed(new SyntaxError(e.message.replace(/^Error transforming .*?: /, '').replace(/\s*\(\d+:\d+\)\s*$/, '')), file, line, column);
    }
  }
  return text.startsWith('#!') ? `//${text}` : text;
};
const placed = (error, file, line, column) => {
  Object.defineProperty(error, 'at', { value: { file, line: +line || 1, column: +column || 1 } });
  return error;
};

// Code, as bjson writes it: a version, the atoms with their texts, and what was compiled. Of
// a module that begins with its name and the names that it imports.
const leb = (n) => {
  const list = [];
  do {
    const b = n & 0x7f;
    n >>>= 7;
    list.push(n > 0 ? b | 0x80 : b);
  } while (n > 0);
  return list;
};
const string = (text) => new Uint8Array(bjson.write(text, 0)).subarray(3);
const unnamedAtom = [1, ...string(unnamed)];
class Code {
  #u8;
  #at;
  constructor(made) {
    this.#u8 = new Uint8Array(bjson.write(made, bjson.WRITE_OBJ_BYTECODE));
  }
  // split finds the atoms, of which a module needs all.
  #split() {
    this.#at = 1;
    this.atoms = [];
    for (let n = this.number(); n > 0; n--) {
      const from = this.#at, type = this.#u8[this.#at++];
      if (type === 0) {
        this.#at += 4;
        this.atoms.push({ from, to: this.#at });
        continue;
      }
      const length = this.number(), size = length & 1 ? (length >>> 1) * 2 : length >>> 1;
      let text = latin1(this.#u8, this.#at, this.#at + size);
      if (length & 1) text = text.replace(/([^])([^])/g, (_, a, b) => String.fromCharCode(a.charCodeAt(0) | (b.charCodeAt(0) << 8)));
      this.#at += size;
      this.atoms.push({ from, to: this.#at, type, text });
    }
    this.body = this.#at;
  }
  number() {
    let n = 0, shift = 0, b;
    do {
      b = this.#u8[this.#at++];
      n |= (b & 0x7f) << shift;
      shift += 7;
    } while (b & 0x80);
    return n;
  }
  // requests are the names that a module imports; where each is stays known.
  requests() {
    this.#split();
    this.#at = this.body + 1;
    const first = (this.number() >>> 1) - this.atoms.findIndex((a) => a.text === unnamed);
    this.first = first;
    this.listed = this.#at;
    const names = [];
    for (let n = this.number(); n > 0; n--) {
      const atom = this.number() >>> 1;
      names.push(atom < first ? known(atom) : this.atoms[atom - first].text);
    }
    this.after = this.#at;
    return names;
  }
  // named gives the code of a script with another name. The atoms come first.
  named(file) {
    const u8 = this.#u8;
    let at = 0;
    do at = u8.indexOf(unnamedAtom[2], at + 1); while (unnamedAtom.some((b, i) => u8[at - 2 + i] !== b));
    return join([u8.subarray(0, at - 2), [1, ...string(file)], u8.subarray(at - 2 + unnamedAtom.length)]);
  }
  // linked is named of a module whose requests are known, with names for what it imports.
  linked(file, imports) {
    const atoms = this.atoms.map((a) => (a.text === unnamed ? [a.type, ...string(file)] : this.#u8.subarray(a.from, a.to)));
    for (const name of imports) atoms.push([1, ...string(name)]);
    return join([
      [this.#u8[0]], leb(atoms.length), ...atoms, this.#u8.subarray(this.body, this.listed), leb(imports.length),
      ...imports.map((_, i) => leb((this.first + this.atoms.length + i) << 1)), this.#u8.subarray(this.after),
    ]);
  }
}
const join = (parts) => {
  const all = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of parts) {
    all.set(p, at);
    at += p.length;
  }
  return bjson.read(all.buffer, 0, all.length, bjson.READ_OBJ_BYTECODE);
};
// known gives the text of an atom that QuickJS brings: the key of an object that has it.
const known = (atom) => {
  const u8 = new Uint8Array(bjson.write({ 'a key': null })), head = 4 + 'a key'.length;
  const code = Uint8Array.from([u8[0], 0, u8[head], 1, ...leb(atom << 1), u8.at(-1)]);
  return Object.keys(bjson.read(code.buffer, 0, code.length, 0))[0];
};

// QuickJS looks for what a module imports while it compiles it, under the names that stand
// there: an empty module stands for each, until the code has the names of files.
const stand = new Set();
const standIn = (name) => {
  if (stand.has(name)) return;
  stand.add(name);
  const code = new Code(evalScript('', { compile_only: true, compile_module: true }));
  code.requests();
  code.linked(name, []);
};
const standIns = (text) => {
  for (const word of ['from', 'import']) {
    for (const [, , name] of places(text, word, /\b(?:from|import)\s*(['"])([^'"\n]+)\1/y)) standIn(name.replace(/^(?:\.\/)+/, ''));
  }
};

const compile = (text, file, module) => {
  if (module) standIns(text);
  try {
    for (;;) {
      try {
        return new Code(evalScript(text, { compile_only: true, compile_module: module }));
      } catch (e) {
        const missing = /^could not load module filename '(.*)'$/.exec(e.message)?.[1];
        if (!module || missing === undefined || stand.has(missing)) throw e;
        standIn(missing);
      }
    }
  } catch (e) {
    const [, line, column] = /<evalScript>:(\d+):(\d+)/.exec(e.stack ?? '') ?? [];
    throw placed(e, file, line, column);
  }
};

// importing has import(…) ask the loader, which QuickJS's own does not know of.
const importing = (text, file) => {
  if (!has(text, 'import', /\bimport\s*\(/y)) return text;
  let tokens;
  try {
    ({ tokens } = parse(text, false, false, false));
  } catch {
    return text; // compiling tells
  }
  let done = '', from = 0;
  for (let i = 0; i + 1 < tokens.length; i++) {
    if (tokens[i].type !== tt._import || tokens[i + 1].type !== tt.parenL) continue;
    const next = tokens[i + 2]?.type === tt.parenR ? '' : ', ';
    done += `${text.slice(from, tokens[i].start)}__nodeImport(${JSON.stringify(file)}${next}`;
    from = tokens[i + 1].end;
  }
  return done + text.slice(from);
};

let count = 0;
const counted = (file) => {
  if (++count > maxModules) throw coded(new Error(`Cannot load ${file}: a script loads at most ${maxModules} modules`), 'ERR_TOO_MANY_MODULES');
};

// CommonJS.
class Module {
  #paths;
  constructor(id = '', parent) {
    this.id = id;
    this.path = path.dirname(id);
    this.exports = {};
    this.filename = id;
    this.loaded = false;
    this.children = [];
    Object.defineProperty(this, 'parent', { value: parent, writable: true, configurable: true });
    parent?.children.push(this);
  }
  get paths() { return this.#paths ??= pathsOf(this.path); }
  set paths(list) { this.#paths = list; }
  require(name) { return requiring(this)(name); }
  _compile(text, file) { run(this, compile(wrap(importing(text, file)), file, false)); }
  static wrap(text) { return wrap(text); }
}
const pathsOf = (folder) => {
  const list = [];
  for (;;) {
    if (!ofPackages(folder)) list.push(within(folder, 'node_modules'));
    if (folder === '/') return list;
    folder = above(folder);
  }
};
const wrap = (text) => `(function (exports, require, module, __filename, __dirname) {${text}\n})`;
const run = (module, code) => {
  const f = evalScript(code.named(module.filename), { eval_function: true });
  Reflect.apply(f, module.exports, [module.exports, requiring(module), module, module.filename, module.path]);
};

let main;
const requiring = (module) => {
  const require = (name) => {
    if (typeof name !== 'string') throw coded(new TypeError(`The "id" argument must be of type string. Received ${name === null ? 'null' : typeof name}`), 'ERR_INVALID_ARG_TYPE');
    if (name === '') throw coded(new TypeError("The argument 'id' must be a non-empty string. Received ''"), 'ERR_INVALID_ARG_VALUE');
    const found = resolve(name, module.filename, false);
    if (found.builtin) return builtin(found.builtin);
    if (found.native) return native(found.native);
    return load(found.file, module).exports;
  };
  require.resolve = (name, options) => {
    for (const folder of options?.paths ?? []) {
      try {
        return resolve(name, path.join(path.resolve(folder), 'x'), false).file ?? name;
      } catch {}
    }
    return options?.paths ? resolve(name, '/x', false).file : resolve(name, module.filename, false).file ?? name;
  };
  require.resolve.paths = (name) => (builtins.has(name) ? null : pathsOf(module.path));
  require.main = main;
  require.cache = cache;
  require.extensions = Module._extensions;
  return require;
};
const load = (file, parent, script) => { // the text of a file that is known to be CommonJS
  const old = cache[file];
  if (old) {
    if (parent && !parent.children.includes(old)) parent.children.push(old);
    return old;
  }
  const module = new Module(file, parent);
  if (!main) {
    main = module;
    module.id = '.';
  }
  counted(file);
  cache[file] = module;
  try {
    const kind = script === undefined ? formatOf(file) : 'commonjs';
    if (kind === 'json') {
      try {
        module.exports = JSON.parse(textOf(file));
      } catch (e) {
        if (e instanceof SyntaxError) e.message = `${file}: ${e.message}`;
        throw e;
      }
    } else {
      const text = script ?? source(file);
      if (kind === 'module' || (kind === 'either' && looksLikeModule(text))) module.exports = whole(file);
      else run(module, compile(wrap(importing(text, file)), file, false));
    }
    module.loaded = true;
  } catch (e) {
    delete cache[file];
    throw e;
  }
  return module;
};

const made = new Map();
const builtin = (name) => {
  if (!made.has(name)) made.set(name, builtins.get(name)());
  return made.get(name);
};

// ES modules: name → true once QuickJS knows it by that name.
const linked = new Set();
const evaluate = (module) => evalScript(module, { eval_module: true });
const give = '__nodeGive';
const synthetic = (name, key, exports) => {
  const names = Object.keys(exports ?? {}).filter((n) => n !== 'default' && /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(n));
  const text = `const m = ${give}(${JSON.stringify(key)});\nexport default m;\n${names.map((n, i) => `const v${i} = m.${n};\nexport { v${i} as ${n} };\n`).join('')}`;
  const code = compile(text, name, true);
  code.requests();
  code.linked(name, []);
  linked.add(name);
};
const keyed = new Map();
globalThis[give] = (key) => keyed.get(key)();

// link reads a module and all that it imports, before any of them is evaluated. It gives the
// name that QuickJS knows it by.
const link = (name, parent) => {
  const found = resolve(name, parent, true);
  if (found.native) return found.native;
  if (found.builtin) {
    const own = `nodejs:${found.builtin}`;
    if (!linked.has(own)) {
      keyed.set(own, () => builtin(found.builtin));
      synthetic(own, own, builtin(found.builtin));
    }
    return own;
  }
  return linkFile(found.file);
};
// Links of what most scripts import are part of the image.
const linkCommon = () => {
  for (const name of ['child_process', 'crypto', 'fs', 'fs/promises', 'module', 'os', 'path', 'process', 'readline', 'url', 'util']) {
    link(`node:${name}`, '/');
    standIn(name);
    standIn(`node:${name}`);
  }
};
const linkFile = (file) => {
  if (linked.has(file)) return file;
  counted(file);
  const kind = formatOf(file);
  const text = kind === 'json' || kind === 'commonjs' ? '' : source(file);
  if (kind === 'module' || (kind === 'either' && looksLikeModule(text))) {
    linkText(text, file);
  } else {
    keyed.set(file, () => load(file).exports);
    const exports = load(file).exports;
    synthetic(file, file, (typeof exports === 'object' || typeof exports === 'function') && !Array.isArray(exports) ? exports : {});
  }
  return file;
};
const linkText = (text, file) => {
  linked.add(file);
  text = importing(text, file);
  if (has(text, 'import', /\bimport\s*\.\s*meta\b/y)) text = `__nodeMeta(import.meta, ${JSON.stringify(file)});${text}`;
  let code;
  try {
    code = compile(text, file, true);
  } catch (e) {
    const plain = text.replace(/(\bfrom\s*['"][^'"\n]+['"]\s*)(?:with|assert)(\s*\{[^}]*\})/g, (all, from, rest) => from + ' '.repeat(all.length - from.length));
    linked.delete(file);
    if (plain === text) throw e;
    linked.add(file);
    code = compile(plain, file, true);
  }
  try {
    const quickjs = code.requests().includes('std'); // such a file means QuickJS's os, too
    const names = code.requests().map((name) => (quickjs && (name === 'os' || name === 'std') ? `qjs:${name}` : link(name, file)));
    return code.linked(file, names);
  } catch (e) {
    linked.delete(file);
    throw e;
  }
};

// spaces gets the namespaces of modules: an import of them by a module of their own.
let spaces = 0;
const space = (name) => {
  const own = `nodejs:space ${spaces++}`;
  const code = compile(`import * as all from 'x'; __nodeSpace(all);`, own, true);
  code.requests();
  let got;
  globalThis.__nodeSpace = (all) => { got = all; };
  const done = evaluate(code.linked(own, [name]));
  return { done, get: () => got };
};
const native = (name) => space(name).get();
// whole evaluates an ES module at once, as require does.
const whole = (file) => {
  const { done, get } = space(linkFile(file));
  let error;
  done.catch((e) => { error = e; });
  const all = get();
  if (all === undefined) throw error ?? coded(new Error(`require() cannot be used on an ESM graph with top-level await: ${file}`), 'ERR_REQUIRE_ASYNC_MODULE');
  return all;
};
const imported = async (parent, name) => {
  const { done, get } = space(link(`${name}`, parent));
  await done;
  return get();
};
globalThis.__nodeImport = imported;
globalThis.__nodeMeta = (meta, file) => {
  meta.url = pathToFileURL(file).href;
  meta.filename = file;
  meta.dirname = path.dirname(file);
  meta.resolve = (name) => {
    const found = resolve(name, file, true);
    return found.file ? pathToFileURL(found.file).href : `node:${found.builtin}`;
  };
  delete meta.main;
};

// runText runs a text as node -e does: in the global scope, with require, if it is no module.
// It gives its last value, and what ends when its top level has.
const runText = (text, file, name, type) => {
  if (type === 'module' || (type !== 'commonjs' && looksLikeModule(text))) return { done: evaluate(linkText(text, file)) };
  const module = new Module(file);
  const all = { require: requiring(module), module, exports: module.exports, __filename: name, __dirname: '.' };
  for (const [key, value] of Object.entries(all)) Object.defineProperty(globalThis, key, { value, writable: true, configurable: true, enumerable: false });
  let code;
  try {
    code = compile(importing(text, file), file, false);
  } catch (e) {
    if (type !== 'code' || !/\bawait\b/.test(text)) throw e;
    return { done: evaluate(linkText(text, file)) }; // await at the top is for modules alone
  }
  return { value: evalScript(code.named(name), { eval_function: true }) };
};

// runCode runs the file of code that a caller brings along, as runText does.
const runCode = (file) => runText(source(file), file, file, 'code');

// runMain runs the file of a run, or only compiles it. It gives what ends when its top level has: nothing of CommonJS.
const runMain = (file, check) => {
  if (check) {
    const text = source(file);
    compile(looksLikeModule(text) ? text : wrap(text), file, looksLikeModule(text));
    return undefined;
  }
  const kind = formatOf(file);
  if (kind !== 'json') {
    const text = source(file);
    if (kind === 'module' || (kind === 'either' && looksLikeModule(text))) {
      counted(file);
      return evaluate(linkText(text, file));
    }
    load(file, undefined, text);
  } else {
    load(file);
  }
  return undefined;
};

Module._extensions = { '.js': (m, file) => run(m, compile(wrap(source(file)), file, false)), '.json': (m, file) => { m.exports = JSON.parse(textOf(file)); } };
Module._cache = cache;
Module._resolveFilename = (name, parent) => { const r = resolve(name, parent?.filename ?? '/x', false); return r.file ?? name; };
Module._load = (name, parent) => requiring(parent ?? new Module('/x'))(name);
Module._nodeModulePaths = pathsOf;
Module.Module = Module;
Module.createRequire = (from) => requiring(new Module(`${from}`.startsWith('file:') ? fileURLToPath(`${from}`) : `${from}`));
Module.isBuiltin = (name) => builtins.has(name.replace(/^node:/, ''));
Module.findPackageJSON = (name, base) => { const p = scopeOf(resolve(`${name}`, fileURLToPath(`${base}`), true).file); return p && `${p.folder}/package.json`; };
Module.register = () => {};
Module.syncBuiltinESMExports = () => {};
Object.defineProperty(Module, 'builtinModules', { get: () => [...builtins.keys()] });

export { builtins, builtin, link, linkCommon, runCode, runMain, runText, sources, Module };
