// The vector skill in JavaScript: what the calls in sdk/vectorstest ask for, by the SDK alone.
import { Failure, invalid, serve } from './openskill_guest.mjs';

// The arguments of all operations; item has a field of each kind.
const Input = {
  op: 'string',
  'item?': { name: 'string', count: 'integer', ratio: 'number', on: 'boolean', tags: ['string'], 'note?': 'string' },
  'code?': 'string',
  'message?': 'string',
  'details?': 'object',
  'path?': 'string',
  'paths?': ['string'],
  'files?': [{ name: 'string', text: 'string' }],
  'value?': 'any',
};

const refused = (f) => {
  try {
    f();
    return null;
  } catch ({ code, message }) {
    return { code, message };
  }
};

const operations = {
  echo: (call, { item }) => ({ item, skill_id: call.skillID, trace_id: call.traceID }),
  fail(call, { code, message, details }) {
    throw new Failure(code, message, details);
  },
  panic(call, { message }) {
    call.info('about to fail');
    throw new Error(message);
  },
  read: (call, { path }) => ({ text: call.readText(path), bytes: call.readData(path).length }),
  probe: (call, { paths }) => ({ errors: paths.map((path) => refused(() => call.readData(path))) }),
  write(call, { files }) {
    call.debug('writing', { files: files.length });
    call.info('größe 😀');
    call.warn('two\nlines');
    return {
      errors: files.map(({ name, text }) => {
        const error = refused(() => call.writeArtifact(name, text));
        if (error) call.error('refused', { name, why: null });
        return error;
      }),
    };
  },
  value: (call, { value }) => ({ value }),
};

function run(call, input) {
  if (Object.hasOwn(operations, input.op)) return operations[input.op](call, input);
  throw invalid('op', 'unsupported', `op: must be one of ${Object.keys(operations).join(', ')}`);
}

await serve(run, Input);
