// node as a program: a process of a run that asks what it was started with, and does what
// node's command line says.
import path from 'node:path';
import { inspect } from 'node:util';
import { begin } from './process.mjs';
import { Module, runMain, runText } from './loader.mjs';
import { ask } from './processes.mjs';

const { std } = globalThis;
const valued = new Set(['-r', '--require', '--import', '--loader', '--experimental-loader', '--env-file', '-C', '--conditions', '--title', '--input-type']);

const quit = (code, text) => {
  (code === 0 ? std.out : std.err).puts(`${text}\n`);
  std.out.flush();
  std.err.flush();
  std.exit(code);
};

// started begins the process, and gives what runs it.
export const started = () => {
  const self = ask({ op: 'self' });
  std.in.read(new ArrayBuffer(1), 0, 0); // where the prelude draws the seed of this process
  const env = Object.fromEntries(self.env.map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]));
  const cwd = self.dir || '/', options = [], required = [];
  const args = self.args.slice(1);
  let text, print = false, type, check = false;
  const value = (name) => {
    if (args.length === 0) quit(9, `node: ${name} requires an argument`);
    return args.shift();
  };
  while (args.length > 0 && args[0].startsWith('-') && args[0] !== '-') {
    const arg = args.shift();
    if (arg === '--') break;
    options.push(arg);
    const [name, inline] = arg.startsWith('--') && arg.includes('=') ? [arg.slice(0, arg.indexOf('=')), arg.slice(arg.indexOf('=') + 1)] : [arg];
    if (name === '-v' || name === '--version') quit(0, 'v20.20.2');
    else if (name === '-h' || name === '--help') quit(0, 'Usage: node [options] [ script.js | -e "script" | - ] [arguments]');
    else if (/^(?:-e|--eval|-p|--print|-pe)$/.test(name)) {
      print ||= /p/.test(name.slice(0, 4)) && name !== '--eval';
      text = inline ?? (name === '-p' && text !== undefined ? text : value(name));
    } else if (name === '-c' || name === '--check') check = true;
    else if (name === '--test' || name === '-i' || name === '--interactive') quit(9, `node: ${name} is not available in the sandbox`);
    else if (valued.has(name)) {
      const given = inline ?? value(name);
      if (name === '-r' || name === '--require' || name === '--import') required.push(given);
      else if (name === '--input-type') type = given;
      else if (name === '--env-file') environment(path.resolve(cwd, given), env);
    }
  }
  let file;
  if (text === undefined && args.length > 0 && args[0] !== '-') file = path.resolve(cwd, args.shift());
  const input = text === undefined && file === undefined && args[0] === '-' ? args.shift() : undefined;
  begin({ file: file ?? input, cwd, args, env, options, pid: self.pid });
  globalThis.scriptArgs = [file ?? 'node', ...args];
  const require = Module.createRequire(`${cwd}/[eval]`);
  for (const name of required) require(name);
  if (file !== undefined) {
    file = globalThis.process.argv[1] = Module._resolveFilename(file);
    return () => runMain(file, check);
  }
  const name = text === undefined ? '[stdin]' : '[eval]';
  text ??= std.in.readAsString();
  return () => {
    const { value, done } = runText(text, `${cwd === '/' ? '' : cwd}/${name}`, name, type);
    if (print) std.out.puts(`${typeof value === 'string' ? value : inspect(value)}\n`);
    return done;
  };
};

// environment adds the variables of a file of NAME=value lines that are not there yet.
const environment = (file, env) => {
  const text = std.loadFile(file);
  if (text === null) quit(9, `node: ${file}: not found`);
  for (const [, name, quoted, plain] of text.matchAll(/^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*(?:(["'`][^]*?["'`])[ \t]*(?:#.*)?$|([^#\n]*))/gm)) {
    env[name] ??= quoted ? (quoted[0] === '"' ? quoted.slice(1, -1).replaceAll('\\n', '\n') : quoted.slice(1, -1)) : plain.trim();
  }
};
