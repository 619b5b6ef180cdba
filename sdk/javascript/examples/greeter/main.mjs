// The skill greeter: it greets somebody by name.
import { invalid, rehearse, serve } from './openskill_guest.mjs';

// What a caller sends. Times may be left out.
const Input = { name: 'string', 'times?': 'integer' };

function greet(call, input) {
  const name = input.name.trim();
  if (name === '') throw invalid('name', 'blank', 'name: must not be blank');
  const times = input.times ?? 1;
  if (times < 1 || times > 9) throw invalid('times', 'range', 'times: must be from 1 to 9');
  call.info('greeting', { times });
  return { greeting: Array(times).fill(`Hello, ${name}!`).join(' ') };
}

await rehearse(greet, { name: 'nobody' }, Input);
await serve(greet, Input);
