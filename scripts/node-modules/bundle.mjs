// bundle.mjs CRATE GLUE OUT: puts the modules that scripts written for Node use into one
// file: those of the crate wasm-rquickjs, packages of npm, and the files of the folder GLUE,
// which are ours.
import { build } from 'esbuild';
import { existsSync } from 'node:fs';
import path from 'node:path';

const [crate, glue, out] = process.argv.slice(2).map((name) => path.resolve(name));
const borrowed = path.join(crate, 'skeleton/src/builtin');
const own = (name) => path.join(glue, `${name}.mjs`);
const file = (name) => path.join(borrowed, `${name}.js`);

// Where the crate's own names are.
const everywhere = { buffer: file('buffer'), 'base64-js': file('base64'), ieee754: file('ieee754') };
const named = {
  http_blob: file('fetch-blob-4.0.0'), streams: file('web-streams-polyfill-4.1.0'), timeout: own('timers'),
  'stream/promises': file('stream_promises'), 'stream/consumers': file('stream_consumers'), 'timers/promises': own('timers'),
};
const native = /^(?:encoding_native|string_decoder_native|url_native|web_crypto_native|intl_native|internal\/binding\/util_native|encoding)$/;
const mine = new Set(['fs', 'process', 'os', 'crypto', 'zlib', 'readline', 'timers', 'child_process', 'http']);

const modules = {
  name: 'modules',
  setup(b) {
    b.onResolve({ filter: /.*/ }, ({ path: name, importer }) => {
      if (importer === '' || name.startsWith('.') || name.startsWith('/')) return undefined;
      const bare = name.replace(/\/$/, '').replace(/^node:/, '').replace(/^__wasm_rquickjs_builtin\//, '');
      if (native.test(bare)) return { path: own('natives') };
      if (Object.hasOwn(named, bare)) return { path: named[bare] };
      if (Object.hasOwn(everywhere, bare)) return { path: everywhere[bare] };
      if (name === 'punycode') return { path: path.resolve('node_modules/punycode/punycode.js') };
      if (bare === name && !importer.startsWith(borrowed)) return undefined; // a package
      if (mine.has(bare)) return { path: own(bare) };
      if (existsSync(file(bare))) return { path: file(bare) };
      return undefined;
    });
  },
};
await build({
  entryPoints: [path.join(glue, 'main.mjs')], outfile: out, bundle: true, format: 'iife', target: 'es2023', minifyWhitespace: true, minifySyntax: true, keepNames: true, legalComments: 'inline', charset: 'utf8',
  nodePaths: [path.resolve('node_modules')], plugins: [modules], logLevel: 'warning', mainFields: ['module', 'main'], // punycode alone has another interface as a module
});
