// crypto: digests by @noble/hashes, random bytes by the host. There are no keys, ciphers
// or signatures.
import { md5, sha1, ripemd160 } from '@noble/hashes/legacy.js';
import { sha224, sha256, sha384, sha512, sha512_256 } from '@noble/hashes/sha2.js';
import { sha3_224, sha3_256, sha3_384, sha3_512 } from '@noble/hashes/sha3.js';
import { blake2b, blake2s } from '@noble/hashes/blake2.js';
import { hmac } from '@noble/hashes/hmac.js';
import { pbkdf2 } from '@noble/hashes/pbkdf2.js';
import { scrypt } from '@noble/hashes/scrypt.js';
import { hkdf } from '@noble/hashes/hkdf.js';
import { Buffer } from 'node:buffer';
import { Transform } from 'node:stream';
import { io } from './loop.mjs';

const { std } = globalThis;
const hashes = {
  md5, sha1, ripemd160, rmd160: ripemd160, sha224, sha256, sha384, sha512, 'sha512-256': sha512_256, 'sha3-224': sha3_224, 'sha3-256': sha3_256, 'sha3-384': sha3_384, 'sha3-512': sha3_512,
  blake2b512: blake2b, blake2s256: blake2s,
};
const named = (name, what) => {
  const found = hashes[`${name}`.toLowerCase().replace(/^rsa-/, '').replace(/^sha-(\d)/, 'sha$1')];
  if (!found) throw Object.assign(new Error(what ?? 'Digest method not supported'), what ? { code: 'ERR_CRYPTO_INVALID_DIGEST' } : {});
  return found;
};
const bytes = (data, encoding) => {
  if (typeof data === 'string') return Buffer.from(data, encoding === 'buffer' ? 'utf8' : encoding);
  if (data instanceof Secret) return data.export();
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  throw Object.assign(new TypeError(`The "data" argument must be of type string or an instance of Buffer, TypedArray, or DataView. Received ${data === null ? 'null' : typeof data}`), { code: 'ERR_INVALID_ARG_TYPE' });
};
const encoded = (u8, encoding) => {
  const b = Buffer.from(u8.buffer, u8.byteOffset, u8.byteLength);
  return encoding && encoding !== 'buffer' ? b.toString(encoding) : b;
};

class Digest extends Transform {
  #state;
  #done = false;
  constructor(state) { super(); this.#state = state; }
  update(data, encoding) {
    if (this.#done) throw Object.assign(new Error('Digest already called'), { code: 'ERR_CRYPTO_HASH_FINALIZED' });
    this.#state.update(bytes(data, encoding));
    return this;
  }
  digest(encoding) {
    if (this.#done) throw Object.assign(new Error('Digest already called'), { code: 'ERR_CRYPTO_HASH_FINALIZED' });
    this.#done = true;
    return encoded(this.#state.digest(), encoding);
  }
  copy() { return new this.constructor(this.#state.clone()); }
  _transform(data, encoding, done) { this.update(data, encoding); done(); }
  _flush(done) { this.push(this.digest()); done(); }
}
export class Hash extends Digest {}
export class Hmac extends Digest {}
class Secret {
  #key;
  constructor(key) { this.#key = key; }
  get type() { return 'secret'; }
  get symmetricKeySize() { return this.#key.length; }
  export() { return Buffer.from(this.#key); }
}

const fill = (u8) => {
  const f = std.open('/dev/urandom', 'rb');
  if (!f) throw new Error('random bytes are not available: too many files are open');
  f.read(u8.buffer, u8.byteOffset, u8.byteLength);
  f.close();
  return u8;
};
const randomBytes = (n, done) => {
  if (!(n >= 0 && n <= 0x7fffffff)) throw Object.assign(new RangeError(`The value of "size" is out of range. It must be >= 0 && <= 2147483647. Received ${n}`), { code: 'ERR_OUT_OF_RANGE' });
  const b = fill(Buffer.alloc(n));
  return done ? io(done, null, b) : b;
};
const randomInt = (min, max, done) => {
  if (max === undefined || typeof max === 'function') [min, max, done] = [0, min, max];
  if (!(max > min)) throw Object.assign(new RangeError(`The value of "max" is out of range. It must be greater than the value of "min" (${min}). Received ${max}`), { code: 'ERR_OUT_OF_RANGE' });
  const range = max - min, limit = 2 ** 48 - (2 ** 48 % range);
  let n;
  do n = randomBytes(6).readUIntBE(0, 6); while (n >= limit);
  const result = min + (n % range);
  return done ? io(done, null, result) : result;
};
const randomUUID = () => {
  const b = randomBytes(16);
  b[6] = (b[6] & 0x0f) | 0x40;
  b[8] = (b[8] & 0x3f) | 0x80;
  const hex = b.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
};
const getRandomValues = (view) => { fill(view); return view; };

const pbkdf2Sync = (password, salt, c, dkLen, digest) => encoded(pbkdf2(named(digest, `Invalid digest: ${digest}`), bytes(password), bytes(salt), { c, dkLen }));
const scryptSync = (password, salt, dkLen, { N = 16384, r = 8, p = 1, cost = N, blockSize = r, parallelization = p } = {}) => encoded(scrypt(bytes(password), bytes(salt), { N: cost, r: blockSize, p: parallelization, dkLen }));
const hkdfSync = (digest, key, salt, info, length) => encoded(hkdf(named(digest), bytes(key), bytes(salt), bytes(info), length)).buffer;
const later = (f) => (...args) => {
  const done = args.pop();
  io(done, null, f(...args));
};

const algorithm = (a) => (typeof a === 'string' ? a : a.name ?? a.hash);
const unsupported = (name) => async () => {
  throw Object.assign(new Error(`crypto.subtle.${name} is not available in the sandbox: digests and HMAC are`), { name: 'NotSupportedError' });
};
class CryptoKey {
  #secret;
  constructor(secret, algorithm, extractable, usages) { this.#secret = secret; Object.assign(this, { type: 'secret', extractable, algorithm, usages }); }
  static secret(key) { return key.#secret; }
}
const hashOf = (key) => named(algorithm(key.algorithm.hash));
const subtle = {
  digest: async (name, data) => named(algorithm(name), 'Unrecognized algorithm name')(bytes(data)).slice().buffer,
  async importKey(format, data, how, extractable, usages) {
    if (format !== 'raw' || !/^hmac$/i.test(algorithm(how))) return unsupported('importKey')();
    return new CryptoKey(bytes(data).slice(), { name: 'HMAC', hash: typeof how.hash === 'string' ? { name: how.hash } : how.hash }, extractable, usages);
  },
  sign: async (_, key, data) => hmac(hashOf(key), CryptoKey.secret(key), bytes(data)).slice().buffer,
  verify: async (_, key, signature, data) => crypto.timingSafeEqual(hmac(hashOf(key), CryptoKey.secret(key), bytes(data)), bytes(signature)),
};
for (const name of ['encrypt', 'decrypt', 'generateKey', 'deriveKey', 'deriveBits', 'exportKey', 'wrapKey', 'unwrapKey']) subtle[name] = unsupported(name);

const no = (name) => () => {
  throw Object.assign(new Error(`crypto.${name} is not available in the sandbox: digests, HMAC, key derivation and random numbers are`), { code: 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM' });
};
export const webcrypto = { subtle, getRandomValues, randomUUID };
const crypto = {
  Hash, Hmac, webcrypto, subtle, getRandomValues, randomBytes, pseudoRandomBytes: randomBytes, randomInt, randomUUID,
  randomFillSync: (view) => fill(view), randomFill: (view, done) => io(done, null, fill(view)),
  createHash: (name) => new Hash(named(name).create()),
  createHmac: (name, key) => new Hmac(hmac.create(named(name, `Invalid digest: ${name}`), bytes(key))),
  hash: (name, data, encoding = 'hex') => encoded(named(name)(bytes(data)), encoding),
  createSecretKey: (key, encoding) => new Secret(bytes(key, encoding)),
  getHashes: () => Object.keys(hashes), getCiphers: () => [], getCurves: () => [],
  timingSafeEqual(a, b) {
    if (a.byteLength !== b.byteLength) throw Object.assign(new RangeError('Input buffers must have the same byte length'), { code: 'ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH' });
    [a, b] = [bytes(a), bytes(b)];
    let differ = 0;
    for (let i = 0; i < a.length; i++) differ |= a[i] ^ b[i];
    return differ === 0;
  },
  pbkdf2Sync, scryptSync, hkdfSync, pbkdf2: later(pbkdf2Sync), scrypt: later((...a) => scryptSync(...a)), hkdf: later(hkdfSync), constants: {},
};
for (const name of ['createCipheriv', 'createDecipheriv', 'createSign', 'createVerify', 'sign', 'verify', 'generateKeyPair', 'generateKeyPairSync', 'generateKeySync', 'createPrivateKey', 'createPublicKey', 'createECDH', 'createDiffieHellman', 'publicEncrypt', 'privateDecrypt']) crypto[name] = no(name);
export default crypto;
