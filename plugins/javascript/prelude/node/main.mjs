// What runs a script written for Node. All of it is loaded once, before the first read of
// standard input, where the image of a skill begins; that read tells which script is run.
import * as assertModule from 'node:assert';
import * as asyncHooks from 'node:async_hooks';
import * as bufferModule from 'node:buffer';
import * as diagnostics from 'node:diagnostics_channel';
import * as eventsModule from 'node:events';
import pathModule from 'node:path';
import './json.mjs';
import './paths.mjs';
import * as punycode from 'node:punycode';
import * as querystring from 'node:querystring';
import * as stream from 'node:stream';
import * as consumers from 'node:stream/consumers';
import * as streamPromises from 'node:stream/promises';
import * as stringDecoder from 'node:string_decoder';
import * as urlModule from 'node:url';
import * as util from 'node:util';
import { AbortController, AbortSignal, DOMException } from '__wasm_rquickjs_builtin/abort_controller';
import * as webstreams from '__wasm_rquickjs_builtin/streams';
import Intl from '__wasm_rquickjs_builtin/intl';
import structuredClone from '__wasm_rquickjs_builtin/structured_clone';
import { Blob, File } from '__wasm_rquickjs_builtin/http_blob';
import childProcess, { kill } from './child_process.mjs';
import { started } from './cli.mjs';
import crypto, { webcrypto } from './crypto.mjs';
import fs from './fs.mjs';
import http, { https, web } from './http.mjs';
import os from './os.mjs';
import process, { begin, fatal, hooks } from './process.mjs';
import readline from './readline.mjs';
import skills from './skills.mjs';
import timers, { promises as timersPromises } from './timers.mjs';
import zlib from './zlib.mjs';
import * as messages from './messages.mjs';
import * as loop from './loop.mjs';
import { atob, btoa, refusing, TextDecoder, TextEncoder, utf8_decode } from './natives.mjs';
import { builtins, builtin, linkCommon, runCode, runMain, Module } from './loader.mjs';
import { make, unavailable } from './unavailable.mjs';

const { std, console, performance } = globalThis;
const own = (m) => (typeof m.default === 'function' ? Object.assign(m.default, Object.fromEntries(Object.entries(m).filter(([k]) => k !== 'default' && !Object.hasOwn(m.default, k)))) : { ...m.default, ...Object.fromEntries(Object.entries(m).filter(([k]) => k !== 'default')) });

const assert = own(assertModule), events = own(eventsModule);
assert.strict ??= assert;
const perf = {
  performance, PerformanceObserver: class { observe() {} disconnect() {} }, constants: {}, monitorEventLoopDelay: () => ({ enable() {}, disable() {}, min: 0, max: 0, mean: 0 }),
};
const modules = {
  assert, 'assert/strict': assert.strict, async_hooks: own(asyncHooks), buffer: { ...own(bufferModule), atob, btoa }, child_process: childProcess, console, constants: { ...os.constants.errno, ...fs.constants }, crypto, diagnostics_channel: own(diagnostics),
  events, fs, 'fs/promises': fs.promises, http, https, module: Module, os, path: pathModule, 'path/posix': pathModule.posix, 'path/win32': pathModule.win32, perf_hooks: perf, process, punycode: own(punycode),
  querystring: own(querystring), readline, 'readline/promises': readline.promises, stream: own(stream), 'stream/consumers': own(consumers), 'stream/promises': own(streamPromises), 'stream/web': own(webstreams),
  string_decoder: own(stringDecoder), timers, 'timers/promises': timersPromises, tty: { isatty: () => false, ReadStream: class {}, WriteStream: class {} }, url: own(urlModule), util: own(util), 'util/types': util.types, zlib,
};
for (const [name, m] of Object.entries(modules)) builtins.set(name, () => m);
for (const name of unavailable) builtins.set(name, () => make(name));
builtins.set('dns/promises', () => make('dns'));
for (const name of ['std']) builtins.set(name, () => std);

const hide = (all) => {
  for (const name of Object.keys(all)) Object.defineProperty(globalThis, name, { value: all[name], writable: true, configurable: true, enumerable: false });
};
hide({
  global: globalThis, process, Buffer: bufferModule.Buffer, setTimeout: loop.setTimeout, setInterval: loop.setInterval, setImmediate: loop.setImmediate, clearTimeout: loop.clearTimeout, clearInterval: loop.clearInterval, clearImmediate: loop.clearImmediate,
  URL: urlModule.URL, URLSearchParams: urlModule.URLSearchParams, TextEncoder, TextDecoder, AbortController, AbortSignal, DOMException, Event: eventsModule.Event, EventTarget: eventsModule.EventTarget, CustomEvent: eventsModule.CustomEvent,
  structuredClone, Intl, Blob, File, crypto: { ...webcrypto }, atob, btoa, ReadableStream: webstreams.ReadableStream, WritableStream: webstreams.WritableStream, TransformStream: webstreams.TransformStream, ...messages,
  ...web,
});
refusing();
performance.timeOrigin ??= Date.now() - performance.now();
for (const name of ['mark', 'measure', 'clearMarks', 'clearMeasures']) performance[name] ??= () => ({ duration: 0 });
performance.toJSON ??= () => ({});

// Where an error is that nobody caught: the file and line of its first frame, and the line.
hooks.locate = (error) => {
  let { file, line, column } = error.at ?? {};
  if (file === undefined) {
    const at = /\((\/[^()\n]*):(\d+):(\d+)\)|at (\/[^()\n]*):(\d+):(\d+)/.exec(error.stack ?? '');
    if (!at) return '';
    [file, line, column] = [at[1] ?? at[4], +(at[2] ?? at[5]), +(at[3] ?? at[6])];
  }
  const text = std.loadFile(file)?.split('\n')[line - 1];
  if (text === undefined || text.length > 500) return `${file}:${line}\n\n`;
  return `${file}:${line}\n${text}\n${text.slice(0, column - 1).replace(/[^\t]/g, ' ')}^\n\n`;
};
hooks.normalize = pathModule.resolve;
hooks.kill = kill;
hooks.builtin = (name) => { const bare = name.replace(/^node:/, ''); return builtins.has(bare) ? builtin(bare) : undefined; };

// QuickJS prints a rejection that nobody handled by the error's toString, which then has no
// caller. The run ends there; its listeners are asked before.
{
  const { Error } = globalThis;
  const print = Error.prototype.toString;
  const { toString } = { toString() {
    const caller = {};
    Error.captureStackTrace(caller, toString);
    if (caller.stack === '' && Error.isError(this)) {
      fatal(this, 'unhandledRejection');
      process.exit();
    }
    return Reflect.apply(print, this, []);
  } };
  Object.defineProperty(Error.prototype, 'toString', { value: toString, writable: true, configurable: true });
}

// The call: eight hexadecimal digits for how many bytes follow, then the file, its working
// folder and the arguments, a zero after each.
const read = (n) => {
  const u8 = new Uint8Array(n);
  for (let done = 0; done < n;) {
    const got = globalThis.os.read(0, u8.buffer, done, n - done);
    if (got <= 0) throw new Error('the call is cut short');
    done += got;
  }
  return utf8_decode(u8);
};
const given = () => {
  const [file, cwd, ...args] = read(parseInt(read(8), 16)).split('\0').slice(0, -1);
  const { OPENSKILL_CODE: code, ...env } = std.getenviron();
  begin({ file, cwd, args, env });
  globalThis.scriptArgs = [file, ...args];
  if (!code) return () => runMain(file);
  hide({ skills });
  return () => {
    const { value, done } = runCode(file);
    if (value instanceof Promise) return value.then(tell);
    tell(value);
    return done;
  };
};
// tell leaves the value of code where the host looks for it, as JSON if it is some.
const tell = (value) => {
  if (value === undefined || value === null) return;
  let text;
  try {
    text = JSON.stringify({ value });
  } catch {} // a circle, or a BigInt
  if (text === undefined || text === '{}') text = JSON.stringify({ repr: util.inspect(value) });
  fs.writeFileSync('/tmp/.value', text);
};
const start = () => {
  try {
    const done = (std.getenv('OPENSKILL_PROCESS') ? started() : given())();
    if (done === undefined) {
      loop.runTicks();
    } else {
      let pending = true;
      hooks.pending = () => pending;
      done.then(() => { pending = false; }, (error) => fatal(error));
    }
  } catch (error) {
    fatal(error);
    loop.runTicks();
  }
  loop.arm(0);
};
// What loads this, and what formats, is done with before the image begins.
(0).toLocaleString();
linkCommon();
hooks.start = () => { // a property, or what it alone refers to would be freed at its end
  std.gc();
  start();
};
globalThis.os.setTimeout(() => hooks.start(), 0);
