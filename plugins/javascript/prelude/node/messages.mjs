// messages has the channels of a script to itself: a message is copied, and arrives in a later turn.
// A port does not keep a script from ending.
import { Event, EventTarget } from 'node:events';
import structuredClone from '__wasm_rquickjs_builtin/structured_clone';
import { setImmediate } from './loop.mjs';

export class MessageEvent extends Event {
  constructor(type, { data = null, origin = '', lastEventId = '', source = null, ports = [] } = {}) { super(type); Object.assign(this, { data, origin, lastEventId, source, ports }); }
}
let making = false;
export class MessagePort extends EventTarget {
  #other; #queue = []; #started = false; #handler = null;
  constructor() {
    if (!making) throw Object.assign(new TypeError('Constructor cannot be called'), { code: 'ERR_CONSTRUCT_CALL_INVALID' });
    super();
  }
  static pair() {
    making = true;
    const [a, b] = [new MessagePort(), new MessagePort()];
    making = false;
    [a.#other, b.#other] = [b, a];
    return [a, b];
  }
  #deliver() {
    while (this.#started && this.#queue.length > 0) {
      const data = this.#queue.shift();
      setImmediate(() => this.dispatchEvent(new MessageEvent('message', { data })));
    }
  }
  postMessage(value) {
    const other = this.#other, data = structuredClone(value);
    if (!other) return;
    other.#queue.push(data);
    other.#deliver();
  }
  start() { this.#started = true; this.#deliver(); }
  close() {
    for (const port of [this, this.#other]) {
      if (!port) continue;
      port.#other = undefined;
      setImmediate(() => port.dispatchEvent(new Event('close')));
    }
  }
  ref() { return this; }
  unref() { return this; }
  get onmessage() { return this.#handler; }
  set onmessage(f) {
    if (this.#handler) this.removeEventListener('message', this.#handler);
    this.#handler = f;
    if (f) this.addEventListener('message', f);
    this.start();
  }
  // As an emitter, which ports are in Node, too.
  on(name, f) {
    this.addEventListener(name, (event) => f.call(this, event.data));
    if (name === 'message') this.start();
    return this;
  }
  once(name, f) {
    this.addEventListener(name, (event) => f.call(this, event.data), { once: true });
    if (name === 'message') this.start();
    return this;
  }
}
export class MessageChannel {
  constructor() { [this.port1, this.port2] = MessagePort.pair(); }
}
