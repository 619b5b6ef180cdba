// The guest of the conformance suite: runnertest.Behaviour says what each of
// these does.
import * as std from 'std';
import * as os from 'os';

const [, behaviour, number, ...names] = scriptArgs;
const n = Number(number);

const line = (i) => String(i % 10_000_000).padStart(7, '0') + '\n';

function pattern(file, n) {
  for (let i = 0; n > 0; i++, n -= 8) file.puts(line(i).slice(0, Math.min(n, 8)));
}

function write(name, n) {
  const parts = name.split('/');
  for (let i = 1; i < parts.length; i++) os.mkdir(parts.slice(0, i).join('/'));
  const file = std.open(name, 'w');
  if (!file) return false;
  pattern(file, n);
  const failed = file.error();
  return file.close() === 0 && !failed;
}

function copy(from, to) {
  const buffer = new ArrayBuffer(1 << 16);
  for (;;) {
    const got = from.read(buffer, 0, buffer.byteLength);
    if (got <= 0) return;
    if (to) to.write(buffer, 0, got);
  }
}

// A function is a way that worked unless it throws or returns null or a negative
// number, which is how std and os tell errors.
const worked = (f) => {
  try {
    const r = f();
    return r !== null && !(typeof r === 'number' && r < 0);
  } catch {
    return false;
  }
};
const opens = (name, mode, text) => () => {
  const file = std.open(name, mode);
  if (file && text) { file.puts(text); return -file.close(); }
  return file;
};

const does = {
  echo: () => copy(std.in, std.out),
  drain: () => console.log(std.in.readAsString().length),
  print: () => pattern(std.out, n),
  'print-forever': () => pattern(std.out, Infinity),
  stderr: () => { std.out.puts('out'); pattern(std.err, n); },
  exit: () => { std.out.puts('bye'); std.exit(n); },
  spin: () => { for (;;); },
  sleep: () => os.sleep(n),
  allocate: () => { for (const kept = []; ;) kept.push(new Uint8Array(1 << 20).fill(1)); },
  recurse: () => { const down = (n) => down(n + 1) + 1; console.log(down(0)); },
  environment: () => console.log(JSON.stringify({ env: std.getenviron(), args: scriptArgs.slice(2) })),
  'read-file': () => {
    const file = std.open(names[0], 'rb');
    if (!file) { console.log('refused'); std.exit(3); }
    copy(file, std.out);
  },
  'write-work': () => { for (const name of names) if (!write('work/' + name, n)) std.exit(67); },
  'fill-work': () => {
    let done = 0;
    const block = new ArrayBuffer(64 << 10);
    for (; done < n; done++) {
      const fd = os.open('work/' + String(done).padStart(5, '0'), os.O_WRONLY | os.O_CREAT | os.O_TRUNC);
      if (fd < 0) break;
      const wrote = os.write(fd, block, 0, block.byteLength);
      os.close(fd);
      if (wrote !== block.byteLength) break;
    }
    console.log(done);
  },
  'list-work': () => {
    const [all, failed] = os.readdir('work');
    console.log(JSON.stringify(failed ? null : all.filter((name) => name !== '.' && name !== '..').sort()));
  },
  'write-data': () => {
    const name = 'data/a.txt';
    const ways = {
      update: opens(name, 'r+', 'X'), append: opens(name, 'a', 'more'), truncate: opens(name, 'w'), create: opens('data/new.txt', 'w'),
      fd: () => os.open(name, os.O_RDWR | os.O_TRUNC), file: () => std.writeFile(name, 'X'), folder: () => os.mkdir('data/new'),
      times: () => os.utimes(name, 0, 0), rename: () => os.rename(name, 'data/b.txt'), remove: () => os.remove(name),
    };
    console.log(JSON.stringify(Object.keys(ways).filter((way) => worked(ways[way]))));
  },
};
does[behaviour]();
