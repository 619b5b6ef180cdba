// readline over any stream, by lines. There is no terminal in the sandbox.
import { EventEmitter } from 'node:events';
import { StringDecoder } from 'node:string_decoder';
import { nextTick } from './loop.mjs';

export class Interface extends EventEmitter {
  #rest = '';
  #asked = [];
  #waiting = [];
  #paused = false;
  #prompt = '> ';
  #ended = false;
  constructor(input, output) {
    super();
    const options = input?.input ? input : { input, output };
    this.input = options.input;
    this.output = options.output;
    this.terminal = false;
    this.closed = false;
    this.line = '';
    this.history = [];
    this.#prompt = options.prompt ?? '> ';
    const decoder = new StringDecoder('utf8');
    const lines = (text) => {
      this.#rest += text;
      const all = this.#rest.split(/\r\n|[\n\r](?!$)|\n|\r(?=$)/);
      if (this.#rest.endsWith('\r') && !this.#ended) {
        const last = all.at(-2);
        all.splice(-2, 2, `${last}\r`);
      }
      this.#rest = all.pop();
      for (const line of all) this.#waiting.push(line);
      this.#tell();
    };
    this.input?.on('data', (chunk) => lines(typeof chunk === 'string' ? chunk : decoder.write(chunk)));
    this.input?.on('end', () => {
      this.#ended = true;
      lines(decoder.end());
      if (this.#rest !== '') this.#waiting.push(this.#rest.replace(/\r$/, ''));
      this.#rest = '';
      this.#tell();
      if (!this.#paused) this.close();
    });
    this.input?.on('error', (e) => this.emit('error', e));
    options.signal?.addEventListener('abort', () => this.close(), { once: true });
    this.input?.resume?.();
  }
  #tell() {
    while (this.#waiting.length > 0 && !this.#paused && !this.closed) {
      const line = this.#waiting.shift(), asked = this.#asked.shift();
      if (asked) asked(line);
      else this.emit('line', line);
    }
  }
  getPrompt() { return this.#prompt; }
  setPrompt(text) { this.#prompt = `${text}`; }
  prompt() { this.resume(); this.output?.write(this.#prompt); }
  question(text, options, answer) {
    if (typeof options === 'function') answer = options;
    if (this.closed) throw Object.assign(new Error('readline was closed'), { code: 'ERR_USE_AFTER_CLOSE' });
    this.output?.write(text);
    this.#asked.push(answer);
    nextTick(() => this.#tell());
  }
  pause() {
    if (this.#paused) return this;
    this.#paused = true;
    this.input?.pause?.();
    this.emit('pause');
    return this;
  }
  resume() {
    if (!this.#paused) return this;
    this.#paused = false;
    this.input?.resume?.();
    this.emit('resume');
    this.#tell();
    if (this.#ended && this.#waiting.length === 0) this.close();
    return this;
  }
  close() {
    if (this.closed) return;
    this.closed = true;
    this.input?.pause?.();
    this.emit('close');
  }
  write(text) { this.output?.write(text ?? ''); }
  getCursorPos() { return { rows: 0, cols: 0 }; }
  [Symbol.asyncIterator]() {
    const got = [], asking = [];
    let ended = this.closed;
    this.on('line', (line) => (asking.length > 0 ? asking.shift()({ value: line, done: false }) : got.push(line)));
    this.on('close', () => {
      ended = true;
      for (const ask of asking.splice(0)) ask({ value: undefined, done: true });
    });
    return {
      next: () => new Promise((resolve) => {
        if (got.length > 0) resolve({ value: got.shift(), done: false });
        else if (ended) resolve({ value: undefined, done: true });
        else asking.push(resolve);
      }),
      return: async () => { this.close(); return { value: undefined, done: true }; },
      [Symbol.asyncIterator]() { return this; },
    };
  }
  [Symbol.dispose]() { this.close(); }
}
const write = (stream, text, done) => { stream.write(text); if (done) nextTick(done); return true; };
export const promises = {
  Interface: class extends Interface {
    question(text, options) { return new Promise((resolve) => super.question(text, options ?? {}, resolve)); }
  },
  createInterface: (input, output) => new promises.Interface(input, output),
};
const readline = {
  Interface, promises, createInterface: (input, output) => new Interface(input, output), emitKeypressEvents() {},
  clearLine: (stream, way, done) => write(stream, ['\x1b[1K', '\x1b[2K', '\x1b[0K'][way + 1 === 0 ? 0 : way === 0 ? 1 : 2], done), clearScreenDown: (stream, done) => write(stream, '\x1b[0J', done),
  cursorTo: (stream, x, y, done) => write(stream, typeof y === 'number' ? `\x1b[${y + 1};${x + 1}H` : `\x1b[${x + 1}G`, typeof y === 'function' ? y : done),
  moveCursor: (stream, dx, dy, done) => write(stream, (dx < 0 ? `\x1b[${-dx}D` : dx > 0 ? `\x1b[${dx}C` : '') + (dy < 0 ? `\x1b[${-dy}A` : dy > 0 ? `\x1b[${dy}B` : ''), done),
};
Interface.prototype.question[Symbol.for('nodejs.util.promisify.custom')] = function question(text) { return new Promise((resolve) => this.question(text, resolve)); };
export const createInterface = readline.createInterface;
export default readline;
