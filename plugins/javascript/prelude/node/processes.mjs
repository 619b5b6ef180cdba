// Processes through the file /dev/process, and the waiting for them: docs/runtimes.md has the
// requests.
import { encode, utf8_decode } from './natives.mjs';
import * as loop from './loop.mjs';

const { std, os } = globalThis;

// ask sends a request and gives its answer, which has error where it failed.
export const ask = (request) => {
  const f = std.open('/dev/process', 'r+');
  if (!f) return { error: 'EACCES', message: 'this run may not start processes' };
  try {
    const bytes = encode(JSON.stringify(request));
    f.write(bytes.buffer, 0, bytes.length);
    f.flush();
    return JSON.parse(utf8_decode(new Uint8Array(f.readAsArrayBuffer())));
  } finally {
    f.close();
  }
};

// What the loop waits for: descriptors, with what is called once they can be read or written,
// and children, with what is called at their end.
const reads = new Map(), writes = new Map(), children = new Map();
export const onRead = (fd, f) => reads.set(fd, f);
export const onWrite = (fd, f) => writes.set(fd, f);
export const onEnd = (pid, f) => children.set(pid, f);
export const forget = (fd) => {
  reads.delete(fd);
  writes.delete(fd);
};
// unclaimed are the inputs of processes that the script has not asked for, and what closes them:
// before a wait, since a shell here reads its input first.
export const unclaimed = new Map();
const taken = (map, key) => {
  const f = map.get(key);
  map.delete(key);
  return f;
};

loop.hooks.waits = () => reads.size + writes.size + children.size > 0;
// poll waits for the first of all, at most some milliseconds, and gives what is to be called.
loop.hooks.poll = (ms) => {
  const calls = [];
  if (ms !== 0) {
    for (const close of unclaimed.values()) close();
    unclaimed.clear();
  }
  const got = ask({ op: 'ready', read: [...reads.keys()], write: [...writes.keys()], ...(children.size > 0 ? { child: 0 } : {}), ...(ms === undefined ? {} : { ms }) });
  for (const { fd } of got.read ?? []) calls.push(taken(reads, fd));
  for (const { fd, bytes } of got.write ?? []) {
    const f = taken(writes, fd);
    calls.push(() => f(bytes));
  }
  while (got.ended) {
    const end = ask({ op: 'wait', block: false });
    if (!end.pid) break;
    const f = taken(children, end.pid);
    if (f) calls.push(() => f(end));
  }
  return calls;
};

// piped has a process's input and outputs go on until its outputs have ended, it has, and the
// time is not over. It waits for nothing else. Each of the outputs may stop it by a text.
export const piped = ({ pid, stdin, stdout, stderr }, input, each, ms) => {
  const until = ms > 0 ? globalThis.performance.now() + ms : undefined;
  const open = new Set([stdout, stderr].filter((fd) => fd !== undefined));
  let at = 0, end, stopped;
  const closeInput = () => {
    if (stdin !== undefined) os.close(stdin);
    stdin = undefined;
  };
  if (!input?.length) closeInput();
  const chunk = new Uint8Array(65536);
  while (!end || open.size > 0) {
    const left = until === undefined ? undefined : Math.max(0, until - globalThis.performance.now());
    const got = ask({ op: 'ready', read: [...open], write: stdin === undefined ? [] : [stdin], ...(end ? { ms: 0 } : { child: pid }), ...(end ? {} : left === undefined ? {} : { ms: left }) });
    for (const { bytes } of got.write ?? []) {
      const n = Math.min(Math.max(bytes, 1), input.length - at);
      const done = os.write(stdin, input.buffer, input.byteOffset + at, n);
      at += Math.max(done, 0);
      if (done < 0 || at === input.length) closeInput();
    }
    for (const { fd } of got.read ?? []) {
      const n = os.read(fd, chunk.buffer, 0, chunk.length);
      if (n > 0) stopped ??= each(fd === stdout ? 1 : 2, chunk.slice(0, n));
      else {
        open.delete(fd);
        os.close(fd);
      }
    }
    if (got.ended) end = ask({ op: 'wait', pid });
    else if (end && !got.read) break; // another process has them open
    if (!end && (stopped || left === 0)) {
      stopped ??= 'ETIMEDOUT';
      break;
    }
  }
  closeInput();
  for (const fd of open) os.close(fd);
  return { end, stopped };
};
