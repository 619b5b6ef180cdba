// zlib by fflate: gzip, deflate and raw deflate. There is no Brotli.
import { gzipSync, gunzipSync, zlibSync, unzlibSync, deflateSync, inflateSync, decompressSync } from 'fflate';
import { Buffer } from 'node:buffer';
import { Transform } from 'node:stream';
import { io } from './loop.mjs';

const bytes = (data) => {
  if (typeof data === 'string') return Buffer.from(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  throw Object.assign(new TypeError('The "buffer" argument must be of type string or an instance of Buffer, TypedArray, DataView, or ArrayBuffer.'), { code: 'ERR_INVALID_ARG_TYPE' });
};
const level = (o) => ({ level: o?.level >= 0 ? o.level : 6, mem: 8 });
const packing = { gzip: (u8, o) => gzipSync(u8, { ...level(o), mtime: 0 }), deflate: (u8, o) => zlibSync(u8, level(o)), deflateRaw: (u8, o) => deflateSync(u8, level(o)) };
const unpacking = { gunzip: gunzipSync, inflate: unzlibSync, inflateRaw: inflateSync, unzip: decompressSync };

const wrong = (e) => Object.assign(new Error(/header|invalid gzip|invalid zlib|unknown compression/.test(e.message) ? 'incorrect header check' : /EOF/.test(e.message) ? 'unexpected end of file' : e.message), { errno: /EOF/.test(e.message) ? -5 : -3, code: /EOF/.test(e.message) ? 'Z_BUF_ERROR' : 'Z_DATA_ERROR' });
const done = (f) => (data, options) => {
  let u8;
  try {
    u8 = f(bytes(data), options);
  } catch (e) {
    throw e.code?.length > 0 ? e : wrong(e);
  }
  if (options?.maxOutputLength < u8.length) throw Object.assign(new RangeError(`Cannot create a Buffer larger than ${options.maxOutputLength} bytes`), { code: 'ERR_BUFFER_TOO_LARGE' });
  return Buffer.from(u8.buffer, u8.byteOffset, u8.byteLength);
};

const zlib = { constants: { Z_NO_COMPRESSION: 0, Z_BEST_SPEED: 1, Z_BEST_COMPRESSION: 9, Z_DEFAULT_COMPRESSION: -1, Z_NO_FLUSH: 0, Z_SYNC_FLUSH: 2, Z_FINISH: 4, Z_OK: 0, Z_DATA_ERROR: -3, Z_BUF_ERROR: -5 } };
for (const [name, f] of Object.entries({ ...packing, ...unpacking })) {
  const now = done(name in packing ? f : (u8) => f(u8));
  zlib[`${name}Sync`] = now;
  zlib[name] = (data, options, then) => {
    if (typeof options === 'function') [options, then] = [undefined, options];
    try {
      io(then, null, now(data, options));
    } catch (e) {
      io(then, e);
    }
  };
  const type = name[0].toUpperCase() + name.slice(1);
  // A stream keeps all that it is given: fflate's own streams end a file that is cut short
  // without an error.
  zlib[type] = { [type]: class extends Transform {
    #chunks = [];
    #options;
    constructor(options) { super(options); this.#options = options; }
    _transform(chunk, encoding, then) { this.#chunks.push(typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk); then(); }
    _flush(then) {
      try {
        this.push(now(Buffer.concat(this.#chunks), this.#options));
      } catch (e) {
        return then(e);
      }
      then();
    }
    close(then) { this.destroy(); if (then) io(then); }
  } }[type];
  zlib[`create${type}`] = (options) => new zlib[type](options);
}
for (const name of ['brotliCompress', 'brotliDecompress', 'brotliCompressSync', 'brotliDecompressSync', 'createBrotliCompress', 'createBrotliDecompress']) {
  zlib[name] = () => {
    throw Object.assign(new Error(`zlib.${name} is not available in the sandbox: gzip and deflate are`), { code: 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM' });
  };
}
let table;
zlib.crc32 = (data, value = 0) => {
  table ??= Uint32Array.from({ length: 256 }, (_, n) => {
    for (let k = 0; k < 8; k++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
    return n;
  });
  let c = ~value;
  for (const b of bytes(data)) c = table[(c ^ b) & 0xff] ^ (c >>> 8);
  return ~c >>> 0;
};
export default zlib;
