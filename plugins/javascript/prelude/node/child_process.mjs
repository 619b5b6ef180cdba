// child_process: there are no processes yet. What starts one is spawn, and nothing else:
// all other functions lead to it, with its error in the way that each has for errors.
import { EventEmitter } from 'node:events';
import { Readable, Writable } from 'node:stream';
import { nextTick } from './loop.mjs';

const refused = (file, syscall) => Object.assign(new Error(`${syscall} ${file} ENOSYS: a script in the sandbox cannot start other programs`), { errno: -38, code: 'ENOSYS', syscall: `${syscall} ${file}`, path: file, spawnargs: [] });

class ChildProcess extends EventEmitter {}
const spawn = (file) => {
  const child = new ChildProcess();
  Object.assign(child, {
    pid: undefined, exitCode: null, signalCode: null, killed: false, connected: false, spawnfile: file, spawnargs: [file], kill: () => false, ref() {}, unref() {}, disconnect() {},
    stdin: new Writable({ write: (_, __, done) => done() }), stdout: Readable.from([]), stderr: Readable.from([]),
  });
  nextTick(() => {
    child.emit('error', refused(file, 'spawn'));
    child.emit('close', -38, null);
  });
  return child;
};
const told = (file, args) => {
  const done = args.findLast((a) => typeof a === 'function'), child = spawn(file);
  child.on('error', (error) => done?.(error, '', ''));
  return child;
};
const sync = (file) => { throw refused(file, 'spawnSync'); };
const cp = {
  ChildProcess, spawn, exec: (command, ...args) => told('/bin/sh', args), execFile: (file, ...args) => told(file, args), fork: (file) => spawn(file),
  spawnSync: (file) => ({ error: refused(file, 'spawnSync'), status: null, signal: null, output: null, pid: 0, stdout: null, stderr: null }),
  execSync: () => sync('/bin/sh'), execFileSync: (file) => sync(file),
};
export default cp;
