// fetch, http and https over /dev/http, by which the host makes the requests that a skill was
// granted. The host sends a request whole, follows redirects of up to three, and has the
// answer whole; a body in gzip is unpacked here.
import { Buffer } from 'node:buffer';
import { EventEmitter } from 'node:events';
import { Readable, Writable } from 'node:stream';
import { inspect } from 'node:util';
import { Blob, File } from '__wasm_rquickjs_builtin/http_blob';
import { ReadableStream } from '__wasm_rquickjs_builtin/streams';
import { encode, URL, URLSearchParams, utf8_decode } from './natives.mjs';
import { io, nextTick } from './loop.mjs';
import zlib from './zlib.mjs';

const { std } = globalThis;
const device = '/dev/http';
const dropped = /^(?:host|content-length|connection|keep-alive|transfer-encoding|te|trailer|upgrade|proxy-.*|expect|accept-encoding)$/i;

// ask sends a request and gives the head of its answer and the body. What went wrong is an
// error with the code that scripts know from Node, and the host's own in hostCode.
const ask = ({ method, url, headers, body, timeout }) => {
  const own = {};
  for (const [name, value] of headers) if (!dropped.test(name)) own[name] = value;
  own['accept-encoding'] = 'gzip, deflate';
  const clean = new URL(url);
  clean.hash = '';
  if (clean.username !== '' || clean.password !== '') {
    own.authorization ??= `Basic ${Buffer.from(`${decodeURIComponent(clean.username)}:${decodeURIComponent(clean.password)}`).toString('base64')}`;
    clean.username = clean.password = '';
  }
  const f = std.open(device, 'r+');
  if (!f) throw Object.assign(new Error('the network is not available'), { code: 'ENETUNREACH', syscall: 'connect' });
  let answer;
  try {
    const head = encode(`${JSON.stringify({ method, url: clean.href, headers: own, ...(timeout > 0 && timeout <= 30_000 ? { timeout_ms: Math.ceil(timeout) } : {}) })}\n`);
    f.write(head.buffer, 0, head.length);
    if (body?.length > 0) f.write(body.buffer, body.byteOffset, body.length);
    f.flush();
    answer = new Uint8Array(f.readAsArrayBuffer());
  } finally {
    f.close();
  }
  const end = answer.indexOf(10), head = JSON.parse(utf8_decode(answer, 0, end < 0 ? answer.length : end));
  if (head.error) {
    const codes = { NETWORK_DENIED: 'EACCES', TIMEOUT: 'ETIMEDOUT', RATE_LIMITED: 'EAGAIN', PAYLOAD_TOO_LARGE: 'EMSGSIZE', INVALID_ARGUMENT: 'EINVAL' };
    const error = Object.assign(new Error(`${head.error.code}: ${head.error.message}`), { code: codes[head.error.code] ?? 'ECONNREFUSED', hostCode: head.error.code, syscall: 'connect', hostname: clean.hostname });
    throw error;
  }
  return { head, body: end < 0 ? new Uint8Array(0) : answer.subarray(end + 1) };
};
const plain = ({ head, body }) => {
  const encoding = head.headers['content-encoding']?.[0]?.toLowerCase();
  if (body.length === 0 || !/^(?:x-)?gzip$|^deflate$/.test(encoding ?? '')) return body;
  return encoding === 'deflate' ? zlib.inflateSync(body) : zlib.gunzipSync(body);
};

const normal = (name) => {
  name = `${name}`;
  if (!/^[!#$%&'*+\-.^_`|~\w]+$/.test(name)) throw new TypeError(`Headers: ${name} is an invalid header name.`);
  return name.toLowerCase();
};
export class Headers {
  #map = new Map();
  constructor(init) {
    if (init === undefined || init === null) return;
    const pairs = typeof init[Symbol.iterator] === 'function' ? init : Object.entries(init);
    for (const [name, value] of pairs) this.append(name, value);
  }
  append(name, value) {
    name = normal(name);
    value = `${value}`.trim();
    const old = this.#map.get(name);
    if (old) old.push(value);
    else this.#map.set(name, [value]);
  }
  set(name, value) { this.#map.set(normal(name), [`${value}`.trim()]); }
  get(name) { return this.#map.get(normal(name))?.join(', ') ?? null; }
  getSetCookie() { return [...this.#map.get('set-cookie') ?? []]; }
  has(name) { return this.#map.has(normal(name)); }
  delete(name) { this.#map.delete(normal(name)); }
  forEach(f, self) { for (const [name, value] of this) f.call(self, value, name, this); }
  * entries() {
    for (const name of [...this.#map.keys()].sort()) {
      if (name === 'set-cookie') for (const value of this.#map.get(name)) yield [name, value];
      else yield [name, this.#map.get(name).join(', ')];
    }
  }
  * keys() { for (const [name] of this) yield name; }
  * values() { for (const [, value] of this) yield value; }
  [Symbol.iterator]() { return this.entries(); }
  get [Symbol.toStringTag]() { return 'Headers'; }
  [Symbol.for('nodejs.util.inspect.custom')](depth, options) { return `Headers ${inspect(Object.fromEntries(this), options)}`; }
}

export class FormData {
  #list = [];
  append(name, value, file) { this.#list.push([`${name}`, FormData.#entry(value, file)]); }
  set(name, value, file) { this.delete(name); this.append(name, value, file); }
  static #entry(value, name) {
    if (!(value instanceof Blob)) return `${value}`;
    return value instanceof File && name === undefined ? value : new File([value], name ?? 'blob', { type: value.type });
  }
  get(name) { return this.#list.find(([n]) => n === name)?.[1] ?? null; }
  getAll(name) { return this.#list.filter(([n]) => n === name).map(([, v]) => v); }
  has(name) { return this.#list.some(([n]) => n === name); }
  delete(name) { this.#list = this.#list.filter(([n]) => n !== name); }
  forEach(f, self) { for (const [name, value] of this) f.call(self, value, name, this); }
  * keys() { for (const [name] of this.#list) yield name; }
  * values() { for (const [, value] of this.#list) yield value; }
  * entries() { yield* this.#list; }
  [Symbol.iterator]() { return this.entries(); }
  get [Symbol.toStringTag]() { return 'FormData'; }
}

// packed gives the bytes of a body, and its type where the body says one.
const packed = async (body) => {
  if (body === null || body === undefined) return [null];
  if (typeof body === 'string') return [encode(body), 'text/plain;charset=UTF-8'];
  if (body instanceof URLSearchParams || body instanceof globalThis.URLSearchParams) return [encode(`${body}`), 'application/x-www-form-urlencoded;charset=UTF-8'];
  if (ArrayBuffer.isView(body)) return [new Uint8Array(body.buffer, body.byteOffset, body.byteLength)];
  if (body instanceof ArrayBuffer) return [new Uint8Array(body)];
  if (body instanceof Blob) return [new Uint8Array(await body.arrayBuffer()), body.type];
  if (body instanceof FormData) {
    const boundary = `----formdata-${Math.random().toString(16).slice(2, 14).padEnd(12, '0')}`, parts = [];
    const quoted = (text) => text.replace(/\r?\n|\r/g, '%0D%0A').replaceAll('"', '%22');
    for (const [name, value] of body) {
      const file = typeof value !== 'string';
      parts.push(encode(`--${boundary}\r\nContent-Disposition: form-data; name="${quoted(name)}"${file ? `; filename="${quoted(value.name)}"\r\nContent-Type: ${value.type || 'application/octet-stream'}` : ''}\r\n\r\n`));
      parts.push(file ? new Uint8Array(await value.arrayBuffer()) : encode(value.replace(/\r?\n|\r/g, '\r\n')), encode('\r\n'));
    }
    return [Buffer.concat([...parts, encode(`--${boundary}--\r\n`)]), `multipart/form-data; boundary=${boundary}`];
  }
  if (typeof body[Symbol.asyncIterator] === 'function' || typeof body[Symbol.iterator] === 'function') {
    const parts = [];
    for await (const part of body) parts.push(typeof part === 'string' ? encode(part) : part);
    return [Buffer.concat(parts)];
  }
  return [encode(`${body}`), 'text/plain;charset=UTF-8'];
};

class Body {
  #bytes; // or what makes them
  #used = false;
  #stream;
  _fill(bytes) { this.#bytes = bytes; }
  get bodyUsed() { return this.#used; }
  get body() {
    if (this.#bytes === null) return null;
    return this.#stream ??= new ReadableStream({
      start: async (controller) => {
        const bytes = await this.#take();
        if (bytes.length > 0) controller.enqueue(bytes);
        controller.close();
      },
    });
  }
  async #take() {
    if (this.#used) throw new TypeError('Body is unusable: Body has already been read');
    this.#used = true;
    return await this.#bytes ?? new Uint8Array(0);
  }
  async bytes() { return this.#take(); }
  async arrayBuffer() { return (await this.#take()).slice().buffer; }
  async text() { return utf8_decode(await this.#take()).replace(/^\ufeff/, ''); }
  async json() { return JSON.parse(await this.text()); }
  async blob() { return new Blob([await this.#take()], { type: this.headers.get('content-type') ?? '' }); }
  async formData() {
    const form = new FormData();
    for (const [name, value] of new URLSearchParams(await this.text())) form.append(name, value);
    return form;
  }
  _copy() {
    if (this.#used) throw new TypeError('Response.clone: Body has already been consumed.');
    return this.#bytes;
  }
}

export class Request extends Body {
  constructor(input, init = {}) {
    super();
    const from = input instanceof Request ? input : undefined;
    this.url = from?.url ?? new URL(`${input}`).href;
    this.method = `${init.method ?? from?.method ?? 'GET'}`;
    if (/^(?:get|head|post|put|delete|options|patch)$/i.test(this.method)) this.method = this.method.toUpperCase();
    this.headers = new Headers(init.headers ?? from?.headers);
    this.signal = init.signal ?? from?.signal ?? null;
    this.redirect = init.redirect ?? from?.redirect ?? 'follow';
    const body = init.body ?? null;
    if (body !== null && /^(?:GET|HEAD)$/.test(this.method)) throw new TypeError('Request with GET/HEAD method cannot have body.');
    this.packed = body === null && from ? from.packed : packed(body);
    this._fill(body === null && !from ? null : this.packed.then(([bytes]) => bytes));
  }
  clone() { return new Request(this); }
}

const phrases = {
  100: 'Continue', 101: 'Switching Protocols', 102: 'Processing', 103: 'Early Hints', 200: 'OK', 201: 'Created', 202: 'Accepted',
  203: 'Non-Authoritative Information', 204: 'No Content', 205: 'Reset Content', 206: 'Partial Content', 207: 'Multi-Status', 208: 'Already Reported',
  226: 'IM Used', 300: 'Multiple Choices', 301: 'Moved Permanently', 302: 'Found', 303: 'See Other', 304: 'Not Modified', 305: 'Use Proxy',
  307: 'Temporary Redirect', 308: 'Permanent Redirect', 400: 'Bad Request', 401: 'Unauthorized', 402: 'Payment Required', 403: 'Forbidden',
  404: 'Not Found', 405: 'Method Not Allowed', 406: 'Not Acceptable', 407: 'Proxy Authentication Required', 408: 'Request Timeout', 409: 'Conflict',
  410: 'Gone', 411: 'Length Required', 412: 'Precondition Failed', 413: 'Payload Too Large', 414: 'URI Too Long', 415: 'Unsupported Media Type',
  416: 'Range Not Satisfiable', 417: 'Expectation Failed', 418: "I'm a Teapot", 421: 'Misdirected Request', 422: 'Unprocessable Entity', 423: 'Locked',
  424: 'Failed Dependency', 425: 'Too Early', 426: 'Upgrade Required', 428: 'Precondition Required', 429: 'Too Many Requests',
  431: 'Request Header Fields Too Large', 451: 'Unavailable For Legal Reasons', 500: 'Internal Server Error', 501: 'Not Implemented', 502: 'Bad Gateway',
  503: 'Service Unavailable', 504: 'Gateway Timeout', 505: 'HTTP Version Not Supported', 506: 'Variant Also Negotiates', 507: 'Insufficient Storage',
  508: 'Loop Detected', 509: 'Bandwidth Limit Exceeded', 510: 'Not Extended', 511: 'Network Authentication Required',
};

export class Response extends Body {
  constructor(body = null, { status = 200, statusText = '', headers } = {}) {
    super();
    Object.assign(this, { status, statusText, headers: new Headers(headers), url: '', redirected: false, type: 'default' });
    this._fill(body === null ? null : packed(body).then(([bytes]) => bytes));
    if (typeof body === 'string' && !this.headers.has('content-type')) this.headers.set('content-type', 'text/plain;charset=UTF-8');
  }
  get ok() { return this.status >= 200 && this.status < 300; }
  clone() { return Object.assign(new Response(null, this), { url: this.url, redirected: this.redirected, type: this.type })._with(this._copy()); }
  _with(bytes) { this._fill(bytes); return this; }
  static json(data, init = {}) { return new Response(JSON.stringify(data), { ...init, headers: { 'content-type': 'application/json', ...init.headers } }); }
  static error() { return Object.assign(new Response(null, { status: 200 }), { status: 0, type: 'error' }); }
  static redirect(url, status = 302) { return new Response(null, { status, headers: { location: `${url}` } }); }
}

const fetch = async (input, init) => {
  const request = new Request(input, init), { signal } = request;
  signal?.throwIfAborted();
  const url = new URL(request.url);
  if (url.protocol === 'data:') {
    const [, type, base64, data] = /^data:([^,]*?)(;base64)?,(.*)$/s.exec(url.href);
    return new Response(base64 ? Buffer.from(data, 'base64') : decodeURIComponent(data), { headers: { 'content-type': type || 'text/plain;charset=US-ASCII' } });
  }
  if (!/^https?:$/.test(url.protocol)) throw new TypeError('fetch failed', { cause: new Error('unknown scheme') });
  const [body, type] = await request.packed;
  if (type && !request.headers.has('content-type')) request.headers.set('content-type', type);
  if (!request.headers.has('user-agent')) request.headers.set('user-agent', 'node');
  if (!request.headers.has('accept')) request.headers.set('accept', '*/*');
  let got;
  await new Promise((resolve) => io(resolve));
  signal?.throwIfAborted();
  try {
    got = ask({ method: request.method, url: url.href, headers: request.headers, body });
  } catch (cause) {
    throw new TypeError('fetch failed', { cause });
  }
  const { head } = got, headers = new Headers();
  for (const [name, values] of Object.entries(head.headers)) for (const value of values) headers.append(name, value);
  const redirected = new URL(head.url).href !== new URL(url.href.replace(/#.*/, '')).href;
  if (redirected && request.redirect === 'error') throw new TypeError('fetch failed', { cause: new Error('unexpected redirect') });
  signal?.throwIfAborted();
  const response = Object.assign(new Response(null, { status: head.status, statusText: phrases[head.status] ?? '', headers }), { url: head.url, redirected, type: 'basic' });
  return response._with(request.method === 'HEAD' || head.status === 204 ? null : plain(got));
};
export const web = { fetch, Headers, Request, Response, FormData };

// http and https.
export class IncomingMessage extends Readable {
  constructor(head, body) {
    super({ read() {} });
    this.statusCode = head.status;
    this.statusMessage = phrases[head.status] ?? '';
    this.httpVersion = '1.1';
    this.headers = {};
    this.rawHeaders = [];
    this.url = '';
    for (const [name, values] of Object.entries(head.headers)) {
      this.headers[name] = name === 'set-cookie' ? values : values.join(', ');
      for (const value of values) this.rawHeaders.push(name, value);
    }
    this.complete = true;
    this.socket = this.connection = { remoteAddress: '', encrypted: head.url.startsWith('https'), destroy() {}, setTimeout() {}, setKeepAlive() {}, on() {}, once() {}, removeListener() {} };
    if (body.length > 0) this.push(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
    this.push(null);
  }
  setTimeout() { return this; }
}

export class ClientRequest extends Writable {
  #headers = new Map();
  #parts = [];
  #options;
  constructor(protocol, url, options, done) {
    super({ autoDestroy: false }); // which it would be at its end, before the answer
    if (typeof url !== 'string' && !(url instanceof URL) && !(url instanceof globalThis.URL)) [options, done, url] = [url, options, undefined];
    if (typeof options === 'function') [options, done] = [{}, options];
    options = { ...options };
    if (url !== undefined) {
      const u = new URL(`${url}`);
      options = { protocol: u.protocol, hostname: u.hostname, port: u.port, path: u.pathname + u.search, auth: u.username ? `${decodeURIComponent(u.username)}:${decodeURIComponent(u.password)}` : undefined, ...options };
    }
    options.protocol ??= protocol;
    if (options.protocol !== protocol && !options.agent) throw Object.assign(new TypeError(`Protocol "${options.protocol}" not supported. Expected "${protocol}"`), { code: 'ERR_INVALID_PROTOCOL' });
    this.#options = options;
    this.method = (options.method ?? 'GET').toUpperCase();
    this.path = options.path ?? '/';
    this.host = `${options.hostname ?? options.host ?? 'localhost'}`;
    this.protocol = options.protocol;
    this.aborted = false;
    this.reusedSocket = false;
    for (const [name, value] of Object.entries(options.headers ?? {})) this.setHeader(name, value);
    if (options.auth) this.setHeader('Authorization', `Basic ${Buffer.from(options.auth).toString('base64')}`);
    if (done) this.once('response', done);
    options.signal?.addEventListener('abort', () => this.destroy(options.signal.reason), { once: true });
    const socket = Object.assign(new EventEmitter(), { setKeepAlive() {}, setNoDelay() {}, setTimeout() {}, destroy() {}, connecting: false, encrypted: protocol === 'https:', remoteAddress: '' });
    this.socket = this.connection = socket;
    nextTick(() => this.emit('socket', socket));
  }
  setHeader(name, value) { if (value !== undefined) this.#headers.set(`${name}`.toLowerCase(), [`${name}`, Array.isArray(value) ? value.map(String) : `${value}`]); return this; }
  getHeader(name) { return this.#headers.get(name.toLowerCase())?.[1]; }
  getHeaders() { return Object.fromEntries([...this.#headers].map(([name, [, value]]) => [name, value])); }
  getHeaderNames() { return [...this.#headers.keys()]; }
  hasHeader(name) { return this.#headers.has(name.toLowerCase()); }
  removeHeader(name) { this.#headers.delete(name.toLowerCase()); }
  flushHeaders() {}
  setNoDelay() {}
  setSocketKeepAlive() {}
  setTimeout(ms, done) { this.timeout = ms; if (done) this.once('timeout', done); return this; }
  abort() { this.aborted = true; this.destroy(); }
  _write(data, encoding, done) { this.#parts.push(typeof data === 'string' ? Buffer.from(data, encoding) : data); done(); }
  _final(done) {
    done();
    io(() => {
      if (this.destroyed) return;
      const { port } = this.#options, usual = this.protocol === 'https:' ? 443 : 80;
      let host = this.host.includes(':') && !this.host.startsWith('[') && !/^[^:]+:\d+$/.test(this.host) ? `[${this.host}]` : this.host;
      if (port && +port !== usual && !/:\d+$/.test(host)) host += `:${port}`;
      let got;
      try {
        got = ask({ method: this.method, url: `${this.protocol}//${host}${this.path}`, headers: [...this.#headers.values()].map(([n, v]) => [n, Array.isArray(v) ? v.join(', ') : v]), body: Buffer.concat(this.#parts), timeout: this.timeout ?? this.#options.timeout });
        if (got.head.headers['content-encoding']) {
          got.body = plain(got);
          for (const name of ['content-encoding', 'content-length']) delete got.head.headers[name];
        }
      } catch (error) {
        if (error.code === 'ETIMEDOUT' && this.emit('timeout') && this.destroyed) return;
        return this.destroy(error);
      }
      this.res = new IncomingMessage(got.head, this.method === 'HEAD' ? new Uint8Array(0) : got.body);
      this.res.req = this;
      if (!this.emit('response', this.res)) this.res.resume();
    });
  }
}
class Agent extends EventEmitter {
  constructor(options = {}) { super(); Object.assign(this, { options, maxSockets: Infinity, keepAlive: false, requests: {}, sockets: {}, freeSockets: {} }); }
  destroy() {}
}
const noServer = () => {
  throw Object.assign(new Error('http.createServer is not available: a script in the sandbox makes requests and serves none'), { code: 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM' });
};
const over = (protocol) => {
  const request = (...args) => new ClientRequest(protocol, ...args);
  return {
    request, get: (...args) => { const r = request(...args); r.end(); return r; }, Agent, globalAgent: Object.assign(new Agent(), { protocol, defaultPort: protocol === 'https:' ? 443 : 80 }), ClientRequest, IncomingMessage,
    createServer: noServer, Server: noServer, STATUS_CODES: phrases, METHODS: ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT'], maxHeaderSize: 16384, validateHeaderName: normal, validateHeaderValue() {},
  };
};
export const https = over('https:');
export default over('http:');
