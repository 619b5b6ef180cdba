// What the module does beyond the vectors: a skill that tests it, on QuickJS and on node.
// Its answer says how many tests there were; one that fails is an exception.
import { Failure, invalid, rehearse, serve, serveOn, typed } from './openskill_guest.mjs';

let tests = 0;
function same(name, got, want) {
  tests++;
  const show = (v) => JSON.stringify(v, (_, x) => (typeof x === 'bigint' ? `${x}n` : x));
  if (show(got) !== show(want)) throw new Error(`${name}: got ${show(got)}, want ${show(want)}`);
}

const hidden = { code: 'INTERNAL', message: 'the skill failed; its standard error says why', details: { reason: 'failed' } };
const number = (field) => ({ code: 'INTERNAL', message: `${field}: NaN and infinite numbers are no JSON`, details: { field, reason: 'number' } });
const noObject = { code: 'INTERNAL', message: 'data: must be an object', details: { field: 'data', reason: 'type' } };
const fails = (error) => () => {
  throw error;
};

async function answers() {
  const circle = {};
  circle.a = [circle];
  for (const [name, run, want] of [
    ['an object', () => ({ a: 1, b: undefined, c: [undefined, 1n << 70n], d: new Date(0) }), '{"a":1,"c":[null,1180591620717411303424],"d":"1970-01-01T00:00:00.000Z"}'],
    ['a promise', async () => ({}), '{}'],
    ['-0 and 1e21', () => ({ a: -0, b: 1e21 }), '{"a":0,"b":1e+21}'],
    ['deep', () => ({ a: JSON.parse('['.repeat(150) + ']'.repeat(150)), b: 1n }), `{"a":${'['.repeat(150)}${']'.repeat(150)},"b":1}`],
    ['half a pair', () => ({ a: '\ud83d' }), '{"a":"\\ud83d"}'],
    ['NaN', () => ({ a: [0, { b: NaN }] }), number('data.a[1].b')],
    ['infinite', () => ({ a: -Infinity }), number('data.a')],
    ['nothing', () => {}, noObject],
    ['null', () => null, noObject],
    ['a list', () => [], noObject],
    ['what JSON has no word for', () => ({ a: () => 1, b: [() => 1, undefined, 1n, Symbol('x')] }), '{"b":[null,null,1,null]}'],
    ['objects of their own', () => ({ a: { toJSON: (key) => `${key}!` }, b: [1n, { toJSON: (key) => key }] }), '{"a":"a!","b":[1,"1"]}'],
    ['null beside NaN', () => ({ a: null, b: [{ c: NaN }] }), number('data.b[0].c')],
    ['a circle', () => circle, hidden],
    ['an exception', fails(new TypeError('x')), hidden],
    ['a rejected promise', () => Promise.reject(new Error('x')), hidden],
    ['a thrown text', fails('x'), hidden],
    ['a thrown nothing', fails(undefined), hidden],
    ['recursion without an end', function run() { return { a: run() }; }, hidden],
    ['details with NaN', fails(new Failure('X', 'x', { a: NaN })), number('details.a')],
    ['details that are none', fails(new Failure('X', 'x', circle)), hidden],
    ['no code', fails(new Failure('', 'x')), hidden],
    ['its own code', fails(new Failure('X', 'x')), { code: 'X', message: 'x' }],
    ['a field', fails(invalid('a', 'blank', 'a: must not be blank')), { code: 'INVALID_ARGUMENT', message: 'a: must not be blank', details: { field: 'a', reason: 'blank' } }],
  ]) {
    const { code, text } = await serveOn('{"input": {}}', run);
    if (typeof want === 'string') same(name, [code, text], [0, `{"success":true,"data":${want},"error":null}\n`]);
    else same(name, [code, JSON.parse(text)], [1, { success: false, data: null, error: want }]);
  }
}

// What JSON.parse would read otherwise, and what only looks so.
async function reading() {
  for (const [text, want] of [
    ['{"a":9007199254740993}', '{"a":9007199254740993}'],
    ['{"a":[-9007199254740993,9007199254740991]}', '{"a":[-9007199254740993,9007199254740991]}'],
    ['{"a":0.1428571428571428,"b":1e+22}', '{"a":0.1428571428571428,"b":1e+22}'],
    ['{"a":"\\":\\":","b" :{"":1}}', '{"a":"\\":\\":","b":{"":1}}'],
    ['{"__proto__":{"a":1},"constructor":{},"b":{"__proto__":null}}', '{"__proto__":{"a":1},"constructor":{},"b":{"__proto__":null}}'],
    ['{"a" :1,"b":1,"b":2}', 'b'],
    ['{"a":"\\":","b":1,"b":2}', 'b'],
    ['{"a":{"__proto__":1,"__proto__":2}}', '__proto__'],
    ['{"a":[{"x":1},{"x":1,"\\u0078"\n:2}]}', 'x'],
  ]) {
    const { text: got } = await serveOn(`{"input":${text}}`, (call, input) => input);
    if (want.startsWith('{')) same(text, got, `{"success":true,"data":${want},"error":null}\n`);
    else same(text, JSON.parse(got).error.details, { reason: 'duplicate', key: want });
  }
}

function types() {
  const shape = { name: 'string', 'at?': { lat: 'number' }, 'list?': [['integer']], 'map?': { '*': 'boolean' }, 'any?': 'any', 'plain?': 'object' };
  const big = 2n ** 64n;
  same('all kinds',
    typed({ name: '', at: { lat: 1, x: 1 }, list: [[1, big], []], map: { a: true, __proto__: null, '*': false }, any: [null], plain: { a: {} }, unknown: 1 }, shape),
    { any: [null], at: { lat: 1 }, list: [[1, big], []], map: { '*': false, a: true }, name: '', plain: { a: {} } });
  same('what may be missing', typed({ name: 'x', at: null }, shape), { at: null, name: 'x' });
  same('a large number', typed(big, 'number'), 18446744073709551616);
  for (const [given, want] of [
    [{}, 'missing name: required'],
    [{ name: 1, at: 1 }, 'type at: must be an object'],
    [{ name: '', at: {} }, 'missing at.lat: required'],
    [{ name: null }, 'type name: must be a string'],
    [{ list: [[], [1, 0.5]] }, 'type list[1][1]: must be an integer'],
    [{ list: {} }, 'type list: must be a list'],
    [{ map: { [`${'é'.repeat(99)}`]: 1 } }, `type map.${'é'.repeat(64)}: must be true or false`],
    [{ plain: [] }, 'type plain: must be an object'],
    [[], 'type input: must be an object'],
  ]) {
    try {
      typed(given, shape);
    } catch ({ code, message, details }) {
      same(want, [code, `${details.reason} ${message}`, message.startsWith(`${details.field}: `)], ['INVALID_ARGUMENT', want, true]);
      continue;
    }
    throw new Error(`${want}: not refused`);
  }
  for (const wrong of ['text', 'constructor', '']) {
    try {
      typed(1, wrong);
    } catch (error) {
      same(`shape ${wrong}`, error instanceof TypeError, true);
      continue;
    }
    throw new Error(`shape ${wrong}: not refused`);
  }
}

async function rehearsals() {
  const seen = [];
  const refused = (f) => {
    try {
      f();
    } catch ({ details }) {
      return details.reason;
    }
    return 'nothing';
  };
  await rehearse((call, { name }) => {
    console.log('nobody reads this');
    seen.push(name, refused(() => call.readData('data/a')), refused(() => call.writeArtifact('a', '')));
    throw new Error('nor this');
  }, { name: 'x' }, { name: 'string' });
  same('a rehearsal', seen, ['x', 'no_data', 'no_scratch']);
}

function files(call) {
  const reason = (f) => {
    try {
      f();
    } catch ({ code, details }) {
      return `${code} ${details.reason}`;
    }
    return '';
  };
  const [outside, name] = ['FORBIDDEN_PATH outside_data', 'FORBIDDEN_PATH name'];
  for (const [path, want] of [
    ['./data/./a', ''], ['data/none', 'NOT_FOUND not_found'], ['data/a/b', 'NOT_FOUND not_found'], ['data', 'INVALID_ARGUMENT no_file'],
    [`data/${'x'.repeat(300)}`, 'NOT_FOUND not_found'], [`data/${'x'.repeat(1100)}`, outside], ['data/\ud800', outside], ['main.mjs', outside], [7, outside], [undefined, outside],
  ]) same(`read ${path}`, reason(() => call.readData(path)), want);
  same('bytes', [...call.readData('data/a')], [195, 164, 0]);
  same('text', call.readText('data/a'), 'ä\0');
  for (const [given, want] of [
    ['', name], ['.', name], ['..', name], ['a..b', name], ['/a', name], ['a\\b', name], ['a\0', name], ['\ud800', name], ['é'.repeat(101), name], [7, name],
    ['é'.repeat(100), ''], ['.hidden', ''],
  ]) same(`write ${given}`, reason(() => call.writeArtifact(given, 'x')), want);
  // Where scratch space has an end, at 1 MiB in this test.
  if (globalThis.std) same('full', reason(() => call.writeArtifact('full', new Uint8Array(2 << 20))), 'INTERNAL unwritable');
  call.writeArtifact('twice', 'longer');
  call.writeArtifact('twice', new Uint8Array([9, 0, 255, 9]).subarray(1, 3));
}

await serve(async (call) => {
  console.log('printed');
  console.info('and this');
  call.debug('a\r\n\u001b[31m\u009b\u2028😀', { l: ['\u2029<'], n: 1n });
  call.warn('NaN', { n: NaN });
  await answers();
  await reading();
  types();
  await rehearsals();
  files(call);
  return { tests };
});
