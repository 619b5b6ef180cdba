// What the borrowed modules take from their own engine, made of what QuickJS has.
import { URL as Parsed, URLSearchParams } from 'whatwg-url-without-unicode';

const { apply } = Reflect;
// Intl puts its own in their place, which takes any language for English.
const methods = [[Date.prototype, 'toLocaleString'], [Date.prototype, 'toLocaleDateString'], [Date.prototype, 'toLocaleTimeString'], [String.prototype, 'localeCompare']].map(([of, name]) => [of, name, of[name]]);
// refusing keeps Intl's for English and dates alone.
export const refusing = () => {
  for (const [of, name, own] of methods) {
    const borrowed = of[name];
    const value = of === String.prototype ? own : { [name](languages, options) {
      const english = languages === undefined || /^en(?:-US)?$/i.test(`${languages}`);
      return apply(english && options !== undefined ? borrowed : own, this, [languages, options]);
    } }[name];
    Object.defineProperty(of, name, { value, writable: true, configurable: true, enumerable: false });
  }
};
const compared = String.prototype.localeCompare;
const fromCharCode = String.fromCharCode;

// latin1 makes a text of bytes, one character each: of the form in which bjson writes a text,
// which is a head, twice the length by seven bits a byte, and the characters.
const { read, write } = globalThis.bjson;
const head = new Uint8Array(write('', 0)).subarray(0, 3);
export const latin1 = (u8, start = 0, end = u8.length) => {
  const n = Math.max(0, end - start), text = new Uint8Array(head.length + 5 + n);
  text.set(head);
  let at = head.length, left = 2 * n;
  for (; left > 0x7f; left >>>= 7) text[at++] = (left & 0x7f) | 0x80;
  text[at++] = left;
  text.set(u8.subarray(start, end), at);
  return read(text.buffer, 0, at + n, 0);
};

// characters gives the bytes of a text whose characters are all one byte, as bjson writes it.
const characters = (text) => {
  const u8 = new Uint8Array(write(text, 0));
  let at = head.length;
  if (u8[at] & 1) return undefined; // two bytes each
  while (u8[at++] & 0x80);
  return u8.subarray(at);
};

// ascii tells by words of four bytes whether all are below 0x80, which takes longer by a pattern.
const ascii = (u8, at = 0, end = u8.length) => {
  let all = 0;
  for (; at < end && (u8.byteOffset + at) % 4 !== 0; at++) all |= u8[at];
  const words = at < end ? new Uint32Array(u8.buffer, u8.byteOffset + at, (end - at) >> 2) : [], n = words.length & ~7;
  let i = 0;
  for (; i < n; i += 8) all |= words[i] | words[i + 1] | words[i + 2] | words[i + 3] | words[i + 4] | words[i + 5] | words[i + 6] | words[i + 7];
  for (; i < words.length; i++) all |= words[i];
  for (at += 4 * words.length; at < end; at++) all |= u8[at];
  return (all & 0x80808080) === 0;
};

// slowly decodes UTF-8 with errors in it: each maximal part of a sequence is one U+FFFD.
const slowly = (u8, i, end) => {
  let text = '';
  while (i < end) {
    const b = u8[i++];
    if (b < 0x80) { text += fromCharCode(b); continue; }
    let need = 0, low = 0x80, high = 0xbf, point = 0;
    if (b >= 0xc2 && b <= 0xdf) { need = 1; point = b & 0x1f; }
    else if (b >= 0xe0 && b <= 0xef) { need = 2; point = b & 0xf; if (b === 0xe0) low = 0xa0; if (b === 0xed) high = 0x9f; }
    else if (b >= 0xf0 && b <= 0xf4) { need = 3; point = b & 7; if (b === 0xf0) low = 0x90; if (b === 0xf4) high = 0x8f; }
    else { text += '\ufffd'; continue; }
    while (need > 0 && i < end && u8[i] >= low && u8[i] <= high) {
      point = (point << 6) | (u8[i++] & 0x3f);
      low = 0x80; high = 0xbf; need--;
    }
    text += need > 0 ? '\ufffd' : String.fromCodePoint(point);
  }
  return text;
};

export const utf8_decode = (u8, start = 0, end = u8.length) => {
  const text = latin1(u8, start, end);
  if (ascii(u8, start, end)) return text;
  try {
    return decodeURIComponent(escape(text));
  } catch {
    return slowly(u8, start, end);
  }
};

const bytesOf = (text) => unescape(encodeURIComponent(text.toWellFormed()));

export const encode = (text) => {
  const plain = characters(text);
  if (plain !== undefined && ascii(plain)) return plain.slice();
  return characters(bytesOf(text)).slice();
};

export const encode_into = (text, target) => {
  let read = 0, written = 0;
  for (const c of text) {
    const b = c < '\x80' ? c : bytesOf(c);
    if (written + b.length > target.length) break;
    for (let i = 0; i < b.length; i++) target[written++] = b.charCodeAt(i);
    read += c.length;
  }
  return { read, written };
};

export const utf8_byte_length = (text) => encode(text).length;

const labels = {
  'utf-8': ['utf-8', 'utf8', 'unicode-1-1-utf-8'], 'utf-16le': ['utf-16le', 'utf-16', 'ucs-2', 'unicode'],
  'windows-1252': ['latin1', 'ascii', 'us-ascii', 'iso-8859-1', 'windows-1252', 'cp1252', 'l1'],
};
const canonical = (label) => Object.keys(labels).find((name) => labels[name].includes(label.trim().toLowerCase()));

// TextDecoder knows UTF-8, UTF-16 and Windows-1252, for which it takes Latin-1.
export class TextDecoder {
  #rest = new Uint8Array(0);
  #begun = false;
  constructor(label = 'utf-8', { fatal = false, ignoreBOM = false } = {}) {
    const encoding = canonical(`${label}`);
    if (encoding === undefined) throw Object.assign(new RangeError(`The "${label}" encoding is not supported`), { code: 'ERR_ENCODING_NOT_SUPPORTED' });
    Object.assign(this, { encoding, fatal, ignoreBOM });
  }
  decode(input = new Uint8Array(0), { stream = false } = {}) {
    let u8 = ArrayBuffer.isView(input) ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength) : new Uint8Array(input);
    if (this.#rest.length > 0) {
      const both = new Uint8Array(this.#rest.length + u8.length);
      both.set(this.#rest);
      both.set(u8, this.#rest.length);
      u8 = both;
      this.#rest = new Uint8Array(0);
    }
    let end = u8.length, text;
    if (this.encoding === 'windows-1252') return latin1(u8);
    if (this.encoding === 'utf-16le') {
      if (stream) end -= end % 2;
      text = '';
      for (let i = 0; i + 1 < end; i += 2) text += fromCharCode(u8[i] | (u8[i + 1] << 8));
      text = text.toWellFormed();
    } else {
      if (stream) {
        let i = end - 1;
        while (i >= 0 && end - i < 4 && (u8[i] & 0xc0) === 0x80) i--;
        const need = i < 0 ? 0 : u8[i] >= 0xf0 ? 4 : u8[i] >= 0xe0 ? 3 : u8[i] >= 0xc0 ? 2 : 1;
        if (i >= 0 && end - i < need) end = i;
      }
      text = utf8_decode(u8, 0, end);
      if (this.fatal && text.includes('\ufffd') && latin1(encode(text)) !== latin1(u8, 0, end)) {
        throw Object.assign(new TypeError('The encoded data was not valid for encoding utf-8'), { code: 'ERR_ENCODING_INVALID_ENCODED_DATA' });
      }
    }
    if (stream) this.#rest = u8.slice(end);
    if (!this.#begun && !this.ignoreBOM && text.startsWith('\ufeff')) text = text.slice(1);
    this.#begun = stream;
    return text;
  }
}

export class TextEncoder {
  get encoding() { return 'utf-8'; }
  encode(text = '') { return encode(`${text}`); }
  encodeInto(text, target) { return encode_into(`${text}`.toWellFormed(), target); }
}

// URL fails as Node's does.
export const URL = new Proxy(Parsed, {
  construct(own, [url, base], target) {
    try {
      return Reflect.construct(own, base === undefined ? [url] : [url, base], target);
    } catch (e) {
      throw Object.assign(e, { message: 'Invalid URL', code: 'ERR_INVALID_URL', input: `${url}` }, base === undefined ? {} : { base: `${base}` });
    }
  },
});
Parsed.prototype.constructor = URL;
URL.canParse ??= function canParse(url, base) {
  try {
    return Boolean(new URL(url, base));
  } catch {
    return false;
  }
};
URL.parse ??= function parse(url, base) {
  try {
    return new URL(url, base);
  } catch {
    return null;
  }
};
const domain = (name) => {
  try {
    return new URL(`http://${name}`).hostname;
  } catch {
    return '';
  }
};
export { URLSearchParams, domain as domainToASCII, domain as domainToASCIILegacy };
export const domainToUnicode = (name) => name;

// The language shows neither a promise's state nor that an object is a Proxy.
export const get_promise_details = () => [0, undefined]; // pending
export const get_proxy_details = () => undefined;
export const key_export = () => undefined;

// Intl: times are in UTC or at a fixed offset, texts compare by their letters.
export const intl_validate_timezone = (zone) => /^(?:UTC|GMT|Etc\/UTC|Etc\/GMT|[+-]\d\d:?\d\d)$/i.test(zone);
export const intl_dtf_resolve_fields = (time, zone) => {
  const [, sign, h, m] = /^([+-])(\d\d):?(\d\d)$/.exec(zone) ?? [];
  const d = new Date(time + (sign ? (sign === '-' ? -1 : 1) * (h * 60 + +m) * 60_000 : 0));
  return [d.getUTCFullYear(), d.getUTCMonth() + 1, d.getUTCDate(), d.getUTCHours(), d.getUTCMinutes(), d.getUTCSeconds(), d.getUTCDay(), 0];
};
export const intl_collator_compare = (a, b) => apply(compared, a, [b]);
export const intl_segment = (text) => {
  let at = 0;
  return JSON.stringify([...text].map((c) => [(at += c.length) - c.length, c, /[\p{L}\p{N}]/u.test(c)]));
};

// atob and btoa, as browsers have them.
const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const wrongLetter = () => Object.assign(new Error('The string to be decoded is not correctly encoded.'), { name: 'InvalidCharacterError', code: 5 });
export const btoa = (text) => {
  text = `${text}`;
  if (/[^\x00-\xff]/.test(text)) throw Object.assign(new Error('Invalid character'), { name: 'InvalidCharacterError', code: 5 });
  let out = '';
  for (let i = 0; i < text.length; i += 3) {
    const [a, b, c] = [text.charCodeAt(i), text.charCodeAt(i + 1), text.charCodeAt(i + 2)];
    out += letters[a >> 2] + letters[((a & 3) << 4) | (b >> 4)] + (i + 1 < text.length ? letters[((b & 15) << 2) | (c >> 6)] : '=') + (i + 2 < text.length ? letters[c & 63] : '=');
  }
  return out;
};
export const atob = (text) => {
  text = `${text}`.replace(/[\t\n\f\r ]/g, '');
  if (text.length % 4 === 0) text = text.replace(/={1,2}$/, '');
  if (text.length % 4 === 1 || /[^A-Za-z0-9+/]/.test(text)) throw wrongLetter();
  let out = '', bits = 0, n = 0;
  for (const c of text) {
    bits = ((bits << 6) | letters.indexOf(c)) & 0xffffff;
    if ((n += 6) >= 8) out += fromCharCode((bits >> (n -= 8)) & 0xff);
  }
  return out;
};
