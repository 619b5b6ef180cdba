// The event loop, in the order of Node's: timers, finished I/O, immediates, and the queue
// of process.nextTick after each. QuickJS runs the microtasks between two of its own
// timers, so each callback has one to itself.
const { os } = globalThis;
const now = () => globalThis.performance.now();

// fail, idle and end are of the process; waits and poll of its children and their streams.
const hooks = { fail: undefined, idle: undefined, end: undefined, waits: undefined, poll: undefined };
const ticks = [];
const due = []; // timers, by time and then by number
let finished = [], arriving = [], immediates = [], batch = [];
let phase = 0, armed = null, flushing = false, alive = 0, count = 0, running = false;

const arm = (ms) => {
  if (armed !== null) os.clearTimeout(armed);
  armed = os.setTimeout(step, Math.ceil(ms));
};

const guarded = (f, self, args) => {
  try {
    Reflect.apply(f, self, args);
  } catch (error) {
    hooks.fail(error);
  }
};

const runTicks = () => {
  flushing = false;
  for (let i = 0; i < ticks.length; i++) guarded(ticks[i][0], undefined, ticks[i][1]);
  ticks.length = 0;
};

const nextTick = (f, ...args) => {
  if (typeof f !== 'function') throw Object.assign(new TypeError('The "callback" argument must be of type function. Received ' + (f === null ? 'null' : typeof f)), { code: 'ERR_INVALID_ARG_TYPE' });
  ticks.push([f, args]);
  if (flushing || running) return;
  flushing = true;
  Promise.resolve().then(() => {}).then(runTicks); // after what waits already
};

// I/O is done at once and told in the next round.
const io = (f, ...args) => {
  alive++;
  arriving.push(() => {
    alive--;
    Reflect.apply(f, undefined, args);
  });
  arm(0);
};

const insert = (t) => {
  let i = due.length;
  while (i > 0 && due[i - 1].at > t.at) i--;
  due.splice(i, 0, t);
};

class Timeout {
  constructor(f, ms, args, repeats) {
    ms = +ms;
    this._idleTimeout = ms >= 1 && ms <= 0x7fffffff ? Math.trunc(ms) : 1;
    this._onTimeout = f;
    Object.defineProperties(this, {
      args: { value: args }, at: { writable: true, value: 0 }, id: { value: ++count }, live: { writable: true, value: false },
      held: { writable: true, value: true }, repeats: { value: repeats },
    });
    byId.set(this.id, this);
    start(this);
  }
  ref() { if (!this.held && this.live) alive++; this.held = true; return this; }
  unref() { if (this.held && this.live) alive--; this.held = false; return this; }
  hasRef() { return this.held; }
  refresh() { stop(this); start(this); return this; }
  close() { stop(this); byId.delete(this.id); return this; }
  [Symbol.toPrimitive]() { return this.id; }
}
const byId = new Map();
const start = (t) => {
  t.at = now() + t._idleTimeout;
  t.live = true;
  if (t.held) alive++;
  insert(t);
  arm(0);
};
const stop = (t) => {
  if (!t.live) return;
  t.live = false;
  if (t.held) alive--;
  const i = due.indexOf(t);
  if (i >= 0) due.splice(i, 1);
};
const fire = (t) => {
  if (!t.live) return;
  stop(t);
  if (!t.repeats) byId.delete(t.id);
  guarded(t._onTimeout, t, t.args);
  if (t.repeats && byId.has(t.id) && !t.live) start(t);
};

const called = (f) => {
  if (typeof f !== 'function') {
    throw Object.assign(new TypeError(`The "callback" argument must be of type function. Received ${f === null ? 'null' : typeof f === 'object' ? `an instance of ${f.constructor?.name}` : typeof f === 'undefined' ? 'undefined' : `type ${typeof f} (${String(f)})`}`), { code: 'ERR_INVALID_ARG_TYPE' });
  }
  return f;
};
const setTimeout = (f, ms, ...args) => new Timeout(called(f), ms, args, false);
const setInterval = (f, ms, ...args) => new Timeout(called(f), ms, args, true);
const clearTimeout = (t) => {
  if (t !== null && typeof t === 'object') t.close?.();
  else byId.get(+t)?.close();
};

class Immediate {
  constructor(f, args) {
    Object.defineProperties(this, { f: { value: f }, args: { value: args }, live: { writable: true, value: true }, held: { writable: true, value: true } });
    alive++;
    immediates.push(this);
    arm(0);
  }
  ref() { if (!this.held && this.live) alive++; this.held = true; return this; }
  unref() { if (this.held && this.live) alive--; this.held = false; return this; }
  hasRef() { return this.held; }
}
const clearImmediate = (i) => {
  if (!(i instanceof Immediate) || !i.live) return;
  i.live = false;
  if (i.held) alive--;
};
const setImmediate = (f, ...args) => new Immediate(called(f), args);
const immediate = (i) => {
  if (!i.live) return;
  clearImmediate(i);
  guarded(i.f, i, i.args);
};

// next gives what is to run now; undefined where nothing is. In the first round a timer of one
// millisecond is due: starting Node takes longer.
let first = true;
const next = () => {
  if (batch.length + due.length + finished.length + arriving.length + immediates.length === 0 && !hooks.waits()) {
    first = false;
    phase = (phase + 1) % 3; // as after seven turns
    return undefined;
  }
  for (let turns = 0; turns < 7; turns++) { // finished I/O is two rounds away at most
    const task = batch.shift();
    if (task) return task;
    phase = (phase + 1) % 3;
    if (phase === 1) {
      const at = now() + (first ? 1 : 0.001);
      batch = due.filter((t) => t.at <= at).map((t) => () => fire(t));
      first = false;
    } else if (phase === 2) {
      batch = hooks.waits() ? finished.concat(hooks.poll(0)) : finished;
      finished = arriving;
      arriving = [];
    } else {
      batch = immediates.map((i) => () => immediate(i));
      immediates = [];
    }
  }
  return undefined;
};

function step() {
  armed = null;
  const task = next();
  if (!task && alive <= 0) {
    running = true;
    hooks.idle();
    running = false;
    runTicks();
    if (alive <= 0) hooks.end();
    arm(0);
    return;
  }
  if (!task) {
    const wait = due.length > 0 ? Math.max(0, due[0].at - now()) : undefined;
    if (finished.length + arriving.length > 0) return arm(0);
    if (!hooks.waits()) return arm(wait ?? 1);
    arriving.push(...hooks.poll(wait));
    return arm(0);
  }
  running = true;
  guarded(task, undefined, []);
  runTicks();
  running = false;
  arm(0);
}

const hold = () => { alive++; };
const release = () => { alive--; arm(0); };

export { hooks, nextTick, runTicks, io, arm, hold, release, setTimeout, setInterval, setImmediate, clearTimeout, clearTimeout as clearInterval, clearImmediate, Timeout, Immediate, guarded };
