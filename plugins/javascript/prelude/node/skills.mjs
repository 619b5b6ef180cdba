// The skills of the host in code that a caller brings along: await skills.calculator({ numbers: [1, 2] }).
import { encode, utf8_decode } from './natives.mjs';

const { std } = globalThis;

// SkillError is a call that failed, with what the host says of it.
class SkillError extends Error {
  constructor({ code, message, details }) {
    super(`${code}: ${message}`);
    Object.assign(this, { name: 'SkillError', code, details: details ?? {} });
  }
}

const ask = (skill, body = '') => {
  const f = std.open('/dev/http', 'r+');
  if (!f) throw new Error('the host cannot be asked');
  try {
    const request = encode(`${JSON.stringify({ skill })}\n${body}`);
    f.write(request.buffer, request.byteOffset, request.length);
    f.flush();
    return JSON.parse(utf8_decode(new Uint8Array(f.readAsArrayBuffer())));
  } finally {
    f.close();
  }
};

const call = (name) => async (input = {}) => {
  const result = ask(name, JSON.stringify(input));
  if (!result.success) throw new SkillError(result.error);
  return result.data;
};

let known;
const names = () => (known ??= ask('').map((tool) => tool.name));

export default new Proxy({ SkillError }, {
  get: (own, name) => own[name] ?? (typeof name === 'string' && name !== 'then' && name !== 'toJSON' ? call(name) : undefined),
  has: (own, name) => name in own || names().includes(name),
  ownKeys: () => [...names(), 'SkillError'],
  getOwnPropertyDescriptor: (own, name) => ({ value: own[name] ?? call(name), enumerable: name !== 'SkillError', configurable: true, writable: true }),
});
