/**
 * A skill's own side of openSkill's contract: one call in, one answer out.
 *
 *     import { serve } from './openskill_guest.mjs';
 *
 *     const greet = (call, { name }) => ({ greeting: `Hello, ${name}!` });
 *
 *     await serve(greet, { name: 'string' });
 *
 * What stands above `serve` is done once for all calls of a skill, because a host starts
 * the script up to where it reads standard input. It runs on QuickJS, in the sandbox, and
 * on node, for an author's own tests.
 *
 * Integers beyond ±(2^53 - 1) come as BigInt, and a BigInt is written as an integer.
 *
 * @typedef {string | [Shape] | {[field: string]: Shape}} Shape
 *   What a value must be: 'string', 'integer', 'number', 'boolean', 'list', 'object' or
 *   'any'; a list of one shape, for lists of such values; an object of shapes, for
 *   objects. A field whose name ends with ? may be missing or null; '*' stands for all
 *   fields that are not named. Others are left to the skill's schema.
 *
 * @callback Run
 *   @param {Call} call
 *   @param {any} input as its shape says
 *   @returns {object | Promise<object>} the data of the answer
 */

/** A code that a skill may answer with, which callers of the host get as it is. */
export const codes = Object.freeze({
  INVALID_ARGUMENT: 'INVALID_ARGUMENT',
  FORBIDDEN_PATH: 'FORBIDDEN_PATH',
  NETWORK_DENIED: 'NETWORK_DENIED',
  NOT_FOUND: 'NOT_FOUND',
  CONFLICT: 'CONFLICT',
  INTERNAL: 'INTERNAL',
  TOOL_INVOCATION_ERROR: 'TOOL_INVOCATION_ERROR',
});

/**
 * Thrown by a skill: why a call is not answered, in the words that its caller reads. Any
 * other exception is INTERNAL for the caller, and its stack goes to standard error. A
 * code of the skill's own is answered by the host as INTERNAL, with it in
 * details.guest_code.
 */
export class Failure extends Error {
  /**
   * @param {string} code
   * @param {string} message what was wrong, and what is accepted
   * @param {object} [details] for programs
   */
  constructor(code, message, details) {
    super(message);
    this.name = 'Failure';
    this.code = code;
    this.details = details;
  }
}

/**
 * An INVALID_ARGUMENT about one field of the input.
 * @param {string} field as a.b or a[0]
 * @param {string} reason a word for programs, such as missing, type or range
 * @param {string} message
 */
export const invalid = (field, reason, message) => new Failure(codes.INVALID_ARGUMENT, message, { field, reason });

const refusal = (reason, message) => new Failure(codes.INVALID_ARGUMENT, message, { reason });
const malformed = () => refusal('malformed', 'standard input must be one JSON object in UTF-8: {"input": {…}}');
const failed = () => new Failure(codes.INTERNAL, 'the skill failed; its standard error says why', { reason: 'failed' });

const below = (path, name) => {
  const short = head(name, 64);
  return path ? `${path}.${short}` : short;
};
const head = (text, n) => (text.length <= n ? text : [...text.slice(0, 2 * n)].slice(0, n).join(''));
const has = (object, key) => Object.prototype.hasOwnProperty.call(object, key);
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

// ---- Reading: strictly, so that no two readers of a call see two things in it.

// The host takes inputs of 64 levels, and the object around them is one more.
const maxDepth = 65;
const numeral = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const words = { t: ['true', true], f: ['false', false], n: ['null', null] };

/** A reader of JSON that has what JSON.parse lacks: exact integers, and no key twice. */
class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.depth = 0;
  }

  space() {
    const { text } = this;
    for (;;) {
      const c = text.charCodeAt(this.at);
      if (c !== 32 && c !== 10 && c !== 13 && c !== 9) return c;
      this.at++;
    }
  }

  only() {
    const value = this.value();
    this.space();
    if (this.at < this.text.length) throw malformed();
    return value;
  }

  value() {
    switch (this.space()) {
      case 0x22: return this.string();
      case 0x7b: return this.nested(this.object);
      case 0x5b: return this.nested(this.list);
      case 0x74: case 0x66: case 0x6e: {
        const [word, value] = words[this.text[this.at]];
        if (!this.text.startsWith(word, this.at)) throw malformed();
        this.at += word.length;
        return value;
      }
      default: return this.number();
    }
  }

  nested(read) {
    if (++this.depth > maxDepth) throw refusal('depth', 'standard input is nested deeper than 65 levels');
    this.at++;
    const made = read.call(this);
    this.at++;
    this.depth--;
    return made;
  }

  // more reports whether another member comes, and is called before each.
  more(end, first) {
    const c = this.space();
    if (c === end) return false;
    if (!first) {
      if (c !== 0x2c) throw malformed();
      this.at++;
    }
    return true;
  }

  list() {
    const made = [];
    while (this.more(0x5d, made.length === 0)) made.push(this.value());
    return made;
  }

  object() {
    const made = {};
    for (let first = true; this.more(0x7d, first); first = false) {
      if (this.space() !== 0x22) throw malformed();
      const key = this.string();
      if (has(made, key)) {
        const failure = refusal('duplicate', 'standard input has a key twice in one object');
        failure.details.key = head(key, 64);
        throw failure;
      }
      if (this.space() !== 0x3a) throw malformed();
      this.at++;
      put(made, key, this.value());
    }
    return made;
  }

  string() {
    const { text, at } = this;
    for (let end = at; ; ) {
      end = text.indexOf('"', end + 1);
      if (end < 0) throw malformed();
      let slashes = 0;
      while (text.charCodeAt(end - 1 - slashes) === 0x5c) slashes++;
      if (slashes % 2 === 1) continue;
      this.at = end + 1;
      let made;
      try {
        made = JSON.parse(text.slice(at, end + 1));
      } catch {
        throw malformed();
      }
      if (!made.isWellFormed()) throw malformed();
      return made;
    }
  }

  number() {
    numeral.lastIndex = this.at;
    const match = numeral.exec(this.text);
    if (match === null) throw malformed();
    this.at = numeral.lastIndex;
    const value = Number(match[0]);
    if (!Number.isFinite(value)) throw refusal('range', 'standard input has a number beyond the range of a double');
    const whole = match[1] === undefined && match[2] === undefined;
    return whole && !Number.isSafeInteger(value) ? BigInt(match[0]) : value;
  }
}

// put sets a field, also one of a name that objects give a meaning to.
const put = (object, key, value) => {
  if (key === '__proto__') Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  else object[key] = value;
};

// parse reads JSON as Reader does. JSON.parse takes a tenth of the time, and is enough
// where counting shows that no key is there twice: a text has at most as many members as
// colons behind quotes, if no colon stands elsewhere.
const parse = (text) => {
  try {
    const value = JSON.parse(text);
    if (keysIn(value, 0) === colonsIn(text)) return value;
  } catch {} // the reader says why
  return new Reader(text).only();
};

// How many keys a value has at all depths; NaN if JSON.parse may have read it wrong.
const keysIn = (value, depth) => {
  switch (typeof value) {
    case 'number': return Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value)) ? 0 : NaN;
    case 'string': return value.isWellFormed() ? 0 : NaN;
    case 'boolean': return 0;
  }
  if (value === null) return 0;
  if (depth === maxDepth) return NaN;
  let n = 0;
  if (Array.isArray(value)) {
    for (const item of value) n += keysIn(item, depth + 1);
    return n;
  }
  for (const key of Object.keys(value)) n += (key.isWellFormed() ? 1 : NaN) + keysIn(value[key], depth + 1);
  return n;
};

// At most so many members are in a text of JSON.
const colonsIn = (text) => {
  const behindQuotes = text.split('":').length;
  if (text.split(':').length !== behindQuotes && /"[ \t\r\n]+:/.test(text)) return NaN;
  return behindQuotes - 1;
};

const readCall = (text) => {
  const call = parse(text);
  if (!isObject(call)) throw malformed();
  if (!has(call, 'input')) throw invalid('input', 'missing', 'input: required');
  if (!isObject(call.input)) throw invalid('input', 'type', 'input: must be an object');
  return call;
};

// ---- Types.

const kinds = {
  string: [(v) => typeof v === 'string', 'a string'],
  integer: [(v) => Number.isInteger(v) || typeof v === 'bigint', 'an integer'],
  number: [(v) => typeof v === 'number' || typeof v === 'bigint', 'a number'],
  boolean: [(v) => typeof v === 'boolean', 'true or false'],
  list: [Array.isArray, 'a list'],
  object: [isObject, 'an object'],
  any: [() => true, ''],
};

/**
 * A value as its shape says, or a Failure that names what is wrong.
 * @param {any} value
 * @param {Shape} shape
 * @param {string} [field] the value's name in the input
 */
export function typed(value, shape, field = '') {
  const need = (kind) => {
    const [is, what] = kinds[kind];
    if (!is(value)) throw invalid(field || 'input', 'type', `${field || 'input'}: must be ${what}`);
  };
  if (typeof shape === 'string') {
    if (!has(kinds, shape)) throw new TypeError(`the field ${field || 'input'} has the shape ${shape}, which there is not`);
    need(shape);
    return shape === 'number' ? Number(value) : value;
  }
  if (Array.isArray(shape)) {
    need('list');
    return value.map((item, i) => typed(item, shape[0], `${field}[${i}]`));
  }
  need('object');
  const made = {};
  // What is wrong with fields that are there comes before what is missing, as in the
  // SDKs for other languages.
  for (const key of Object.keys(value).sort()) {
    const name = below(field, key);
    if (key !== '*' && has(shape, key)) put(made, key, typed(value[key], shape[key], name));
    else if (has(shape, `${key}?`)) put(made, key, value[key] === null ? null : typed(value[key], shape[`${key}?`], name));
    else if (has(shape, '*')) put(made, key, typed(value[key], shape['*'], name));
  }
  for (const key of Object.keys(shape)) {
    if (key === '*' || key.endsWith('?') || has(value, key)) continue;
    throw invalid(below(field, key), 'missing', `${below(field, key)}: required`);
  }
  return made;
}

// ---- Writing.

/**
 * A value as JSON. JSON.stringify writes NaN as null, and takes no BigInt: where there
 * may be one of these, the value is written by exactly.
 */
function write(value, path) {
  return isPlain(value, 0) ? JSON.stringify(value) : exactly(value, path, '', 0);
}

// Whether a value is known to be as JSON.stringify writes it.
const isPlain = (value, depth) => {
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object' || value === null) return typeof value !== 'bigint';
  if (depth > 200 || typeof value.toJSON === 'function') return false;
  for (const item of Array.isArray(value) ? value : Object.values(value)) if (!isPlain(item, depth + 1)) return false;
  return true;
};

function exactly(value, path, key, depth) {
  if (depth > 200) throw new TypeError(`${head(path, 64)}: nested deeper than 200 levels, or in a circle`);
  if (typeof value === 'object' && value !== null && typeof value.toJSON === 'function') value = value.toJSON(key);
  switch (typeof value) {
    case 'bigint': return value.toString();
    case 'number':
      if (Number.isFinite(value)) break;
      throw new Failure(codes.INTERNAL, `${path}: NaN and infinite numbers are no JSON`, { field: path, reason: 'number' });
    case 'object':
      if (value === null) break;
      if (Array.isArray(value)) {
        return `[${value.map((item, i) => exactly(item, `${path}[${i}]`, String(i), depth + 1) ?? 'null').join(',')}]`;
      }
      return `{${Object.keys(value)
        .map((name) => [name, exactly(value[name], below(path, name), name, depth + 1)])
        .filter(([, text]) => text !== undefined)
        .map(([name, text]) => `${JSON.stringify(name)}:${text}`)
        .join(',')}}`;
  }
  return JSON.stringify(value); // undefined for what JSON has no word for
}

const breaks = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;

// Text as a line of a log: what ends lines or commands terminals becomes escapes.
const oneLine = (text) => text.replace(breaks, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

// ---- The system: QuickJS, or node.

const { std, os } = globalThis;

// Error numbers of WASI.
const [ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, EPERM, ENOTCAPABLE] = [32, 37, 44, 54, 63, 76];

const quickjs = () => ({
  read: () => std.in.readAsString(),
  print: (text) => {
    std.out.puts(text);
    std.out.flush();
  },
  log: (text) => {
    std.err.puts(text);
    std.err.flush();
  },
  exit: (code) => std.exit(code),
  /** @returns {{kind: string, why?: string}} */
  look(path) {
    // There is no lstat: links are followed, and the sandbox lets none lead out of its folder.
    const [info, error] = os.stat(path);
    if (error === ENOENT || error === ENOTDIR || error === ENAMETOOLONG) return { kind: 'none' };
    if (error === ELOOP || error === EPERM || error === ENOTCAPABLE) return { kind: 'link' };
    if (error !== 0) return { kind: 'error', why: `error ${error}` };
    const type = info.mode & os.S_IFMT;
    return { kind: type === os.S_IFREG ? 'file' : type === os.S_IFDIR ? 'folder' : 'other' };
  },
  bytes(path) {
    const file = this.open(path, 'rb');
    try {
      return new Uint8Array(file.readAsArrayBuffer());
    } finally {
      file.close();
    }
  },
  text(path) {
    const file = this.open(path, 'rb');
    try {
      return file.readAsString();
    } finally {
      file.close();
    }
  },
  write(path, content) {
    const file = this.open(path, 'wb');
    let written = 0; // what is missing
    if (typeof content === 'string') {
      file.puts(content);
      file.flush();
      written = Number(file.error());
    } else written = file.write(content.buffer, content.byteOffset, content.byteLength) - content.byteLength;
    if (file.close() === 0 && written === 0) return;
    os.remove(path); // half an artifact is none
    throw new Error('not all could be written');
  },
  open(path, mode) {
    const failure = {};
    const file = std.open(path, mode, failure);
    if (file === null) throw new Error(`error ${failure.errno}`);
    return file;
  },
});

const node = (fs, process) => ({
  read: () => fs.readFileSync(0, 'utf8'),
  print(text) {
    for (let rest = globalThis.Buffer.from(text); rest.length > 0; ) {
      try {
        rest = rest.subarray(fs.writeSync(1, rest));
      } catch (error) {
        if (error.code !== 'EAGAIN') throw error; // a pipe that is full
      }
    }
  },
  log: (text) => fs.writeFileSync(2, text),
  exit: (code) => {
    process.exitCode = code;
  },
  look(path, follow) {
    try {
      const info = (follow ? fs.statSync : fs.lstatSync)(path);
      return { kind: info.isFile() ? 'file' : info.isDirectory() ? 'folder' : info.isSymbolicLink() ? 'link' : 'other' };
    } catch (error) {
      if (['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'].includes(error.code)) return { kind: 'none' };
      if (['ELOOP', 'EPERM'].includes(error.code)) return { kind: 'link' };
      return { kind: 'error', why: error.message };
    }
  },
  bytes: (path) => new Uint8Array(fs.readFileSync(path)),
  text: (path) => fs.readFileSync(path, 'utf8'),
  write(path, content) {
    const file = fs.openSync(path, 'w');
    try {
      fs.writeFileSync(file, content);
    } catch (error) {
      fs.rmSync(path); // half an artifact is none
      throw error;
    } finally {
      fs.closeSync(file);
    }
  },
});

const system = std ? quickjs() : node(await import('node:fs'), globalThis.process);

// ---- A call.

const odd = /[\u0000-\u001f\u007f\\]/;

// A path of the data folder in its parts, the first one data; null if it is none.
const dataPath = (path) => {
  // Any "..", also within a name: the host has the same rule.
  if (typeof path !== 'string' || path.startsWith('/') || path.includes('..') || [...path].length > 1024 || odd.test(path)) return null;
  if (!path.isWellFormed()) return null;
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  return parts[0] === 'data' ? parts : null;
};

// How many bytes text has as UTF-8.
const utf8Length = (text) => {
  let n = 0;
  for (const c of text) n += c < '\u0080' ? 1 : c < '\u0800' ? 2 : c.length === 1 ? 3 : 4;
  return n;
};

/** What a skill's function is told of the call, and can do in it. */
export class Call {
  #files;
  #log;

  constructor(id, trace, files, log) {
    /** @type {string} */
    this.skillID = id;
    /** @type {string} */
    this.traceID = trace;
    this.#files = files;
    this.#log = log;
  }

  /**
   * Writes a line to standard error, which operators may read: the level, the message,
   * and the fields as JSON.
   * @param {string} message
   * @param {object} [fields]
   */
  debug(message, fields) { this.#line('DEBUG', message, fields); }
  info(message, fields) { this.#line('INFO', message, fields); }
  warn(message, fields) { this.#line('WARN', message, fields); }

  /** Ends nothing: throw a Failure for that. */
  error(message, fields) { this.#line('ERROR', message, fields); }

  #line(level, message, fields) {
    let line = `${level} ${oneLine(String(message))}`;
    if (fields !== undefined) {
      try {
        line += ` ${oneLine(write(fields, 'fields'))}`;
      } catch {
        line += ` ${oneLine(String(fields))}`;
      }
    }
    try {
      this.#log(`${line}\n`);
    } catch {} // a log that is gone ends no call
  }

  /**
   * The bytes of a file of the data folder. The path is as callers give it,
   * ./data/docs/a.txt; one that is absolute or could lead out of the folder is
   * FORBIDDEN_PATH before anything is opened. Links are not followed, but for those
   * within the folder on QuickJS, which cannot tell them.
   * @param {string} path
   * @returns {Uint8Array}
   */
  readData(path) { return this.#read(path, (at) => system.bytes(at)); }

  /**
   * A file of the data folder as text in UTF-8; see readData.
   * @param {string} path
   * @returns {string}
   */
  readText(path) { return this.#read(path, (at) => system.text(at)); }

  #read(path, read) {
    const fault = (code, reason, message) => new Failure(code, message, { path: head(String(path), 200), reason });
    const parts = dataPath(path);
    if (parts === null) {
      throw fault(codes.FORBIDDEN_PATH, 'outside_data',
        'a path must be relative and in ./data, without .., backslashes and control characters, as ./data/docs/a.txt');
    }
    if (!this.#files || system.look('./data', true).kind !== 'folder') {
      throw new Failure(codes.INTERNAL, 'this skill was given no ./data folder to read', { reason: 'no_data' });
    }
    let at = '.';
    let seen;
    const unreadable = (why) => {
      this.error('reading ./data', { why });
      return fault(codes.INTERNAL, 'unreadable', 'the file in ./data could not be read');
    };
    for (const [i, part] of parts.entries()) {
      at += `/${part}`;
      seen = system.look(at, i === 0); // the host may have put a link at data
      if (seen.kind === 'none') throw fault(codes.NOT_FOUND, 'not_found', 'there is no such file in ./data');
      if (seen.kind === 'link') throw fault(codes.FORBIDDEN_PATH, 'link', 'links in ./data are not followed');
      if (seen.kind === 'error') throw unreadable(seen.why);
    }
    if (seen.kind !== 'file') throw fault(codes.INVALID_ARGUMENT, 'no_file', 'the path in ./data is not a file');
    try {
      return read(at);
    } catch (error) {
      throw unreadable(String(error));
    }
  }

  /**
   * Writes a file that becomes an artifact of the call, in the place of an earlier one
   * of the name. The skill must have been granted scratch space.
   * @param {string} name
   * @param {Uint8Array | string} content
   */
  writeArtifact(name, content) {
    const wrong = typeof name !== 'string' || name === '' || name === '.' || name.includes('..') || name.includes('/') || odd.test(name);
    if (wrong || !name.isWellFormed() || utf8Length(name) > 200) {
      throw new Failure(codes.FORBIDDEN_PATH,
        "an artifact's name must be one file name of at most 200 bytes, without slashes, backslashes and control characters, as report.csv",
        { reason: 'name' });
    }
    if (!this.#files || system.look('./work', true).kind !== 'folder') {
      throw new Failure(codes.INTERNAL, 'this skill was given no scratch space to write to', { reason: 'no_scratch' });
    }
    try {
      system.write(`./work/${name}`, content);
    } catch (error) {
      this.error('writing an artifact', { why: String(error) });
      throw new Failure(codes.INTERNAL, 'the artifact could not be written; the scratch space may be full', { reason: 'unwritable' });
    }
  }
}

// ---- From standard input to standard output.

/**
 * Reads the call from standard input, has `run` answer it, prints the answer, and ends
 * the program with exit code 0 for success and 1 for an error. What `run` prints by
 * console.log goes to standard error.
 * @param {Run} run
 * @param {Shape} [shape] of the input
 */
export async function serve(run, shape = 'object') {
  const answer = await quietly(() => answerTo(() => system.read(), run, shape, true, system.log));
  system.print(answer.text);
  system.exit(answer.code);
}

/**
 * Has `run` answer an input that nobody sent, and throws the answer away. Before
 * `serve`, a host does it once for all calls of a skill, and each of them finds made what
 * is made at a first use. The call has no files, and `run` must not depend on time or
 * chance in it.
 * @param {Run} run
 * @param {object} sample an input
 * @param {Shape} [shape]
 */
export async function rehearse(run, sample, shape = 'object') {
  await quietly(() => answerTo(() => write({ input: sample }, 'sample'), run, shape, false, () => {}));
}

/**
 * `serve` for tests: gives the exit code and what is printed.
 * @param {string} given standard input
 * @param {Run} run
 * @param {Shape} [shape]
 * @returns {Promise<{code: number, text: string}>}
 */
export async function serveOn(given, run, shape = 'object') {
  return answerTo(() => given, run, shape, true, system.log);
}

// Has what is printed while f runs go to standard error: it must not get into the answer.
async function quietly(f) {
  const { console } = globalThis;
  const names = ['log', 'info', 'debug'];
  const before = names.map((name) => console[name]);
  for (const name of names) console[name] = console.error;
  try {
    return await f();
  } finally {
    names.forEach((name, i) => { console[name] = before[i]; });
  }
}

async function answerTo(read, run, shape, files, log) {
  let call = new Call('', '', files, log);
  try {
    const given = readCall(read());
    const name = (key) => (typeof given[key] === 'string' ? given[key] : '');
    call = new Call(name('skill_id'), name('trace_id'), files, log);
    const data = await run(call, typed(given.input, shape));
    if (!isObject(data)) throw new Failure(codes.INTERNAL, 'data: must be an object', { field: 'data', reason: 'type' });
    return { code: 0, text: `{"success":true,"data":${write(data, 'data')},"error":null}\n` };
  } catch (error) {
    return { code: 1, text: `{"success":false,"data":null,"error":${fault(call, error, log)}}\n` };
  }
}

// The error of an answer as JSON. What is not for callers goes to standard error.
function fault(call, error, log) {
  let failure = error;
  try {
    if (!(error instanceof Failure)) throw error;
    if (typeof error.code !== 'string' || error.code === '') throw new TypeError('a Failure needs a code, which is text');
    if (error.details !== undefined) write(error.details, 'details');
  } catch (why) {
    failure = why;
    if (!(why instanceof Failure)) {
      const text = why instanceof Error ? why.message : String(why);
      call.error(`uncaught: ${text}`);
      try {
        if (why instanceof Error && why.stack) log(`${why.stack}\n`);
      } catch {} // a log that is gone ends no call
      failure = failed();
    }
  }
  return write({ code: failure.code, message: failure.message, details: failure.details }, 'error');
}
