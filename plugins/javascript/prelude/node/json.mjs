// json has JSON.parse say what is wrong in the words of Node: scripts print them.
const { parse } = JSON;
const context = 10; // characters on each side that Node shows

// wrong says what is wrong with a text that is not JSON; undefined where it finds nothing.
export const wrong = (text) => {
  const n = text.length, open = [];
  let i = 0;
  const at = (what) => `${what} in JSON at position ${i}`;
  const blank = () => { while (i < n && ' \t\n\r'.includes(text[i])) i++; };
  const token = () => {
    if (i >= n) return 'Unexpected end of JSON input';
    const c = text[i];
    if (c === '"') return at('Unexpected string');
    if (c === '-' || (c >= '0' && c <= '9')) return at('Unexpected number');
    if (/^(?:NaN|Infinity|undefined|\[object Object\])$/.test(text)) return `"${text}" is not valid JSON`;
    const before = n > 2 * context && i >= context, after = n > 2 * context && i < n - context;
    return `Unexpected token '${c}', ${before ? '...' : ''}"${text.slice(before ? i - context : 0, after ? i + context : n)}"${after ? '...' : ''} is not valid JSON`;
  };
  const string = () => {
    for (i++; ; i++) {
      if (i >= n) return at('Unterminated string');
      const c = text[i];
      if (c === '"') break;
      if (c < ' ') return at('Bad control character in string literal');
      if (c !== '\\') continue;
      if (++i >= n) return 'Unexpected end of JSON input';
      if (text[i] === 'u') {
        for (let k = 0; k < 4; k++) if (!/[\da-fA-F]/.test(text[++i] ?? '')) return at('Bad Unicode escape');
      } else if (!'"\\/bfnrt'.includes(text[i])) {
        return at('Bad escaped character');
      }
    }
    i++;
    return undefined;
  };
  const digits = () => { const from = i; while (text[i] >= '0' && text[i] <= '9') i++; return i > from; };
  const number = () => {
    if (text[i] === '-') {
      i++;
      if (!(text[i] >= '0' && text[i] <= '9')) return at('No number after minus sign');
    }
    if (text[i] === '0') {
      i++;
      if (text[i] >= '0' && text[i] <= '9') return at('Unexpected number');
    } else {
      digits();
    }
    if (text[i] === '.') {
      i++;
      if (!digits()) return at('Unterminated fractional number');
    }
    if (text[i] === 'e' || text[i] === 'E') {
      i++;
      if (text[i] === '+' || text[i] === '-') i++;
      if (!digits()) return at('Exponent part is missing a number');
    }
    return undefined;
  };
  const key = (first) => {
    blank();
    if (text[i] !== '"') return first ? at("Expected property name or '}'") : at('Expected double-quoted property name');
    const bad = string();
    if (bad) return bad;
    blank();
    if (text[i] !== ':') return first ? at("Expected ':' after property name") : token(); // as Node has it
    i++;
    return undefined;
  };
  for (;;) { // a value
    blank();
    const c = text[i];
    let bad;
    if (c === '{' || c === '[') {
      i++;
      blank();
      if (text[i] !== (c === '{' ? '}' : ']')) {
        open.push(c);
        if (c === '{' && (bad = key(true))) return bad;
        continue;
      }
      i++;
    } else if (c === '"') {
      bad = string();
    } else if (c === '-' || (c >= '0' && c <= '9')) {
      bad = number();
    } else {
      const word = { t: 'true', f: 'false', n: 'null' }[c];
      if (!word) return token();
      for (const letter of word) {
        if (text[i] !== letter) return token();
        i++;
      }
    }
    if (bad) return bad;
    for (;;) { // after a value
      blank();
      if (open.length === 0) return i < n ? `Unexpected non-whitespace character after JSON at position ${i}` : undefined;
      const object = open.at(-1) === '{';
      if (text[i] === ',') {
        i++;
        if (object && (bad = key(false))) return bad;
        break;
      }
      if (text[i] !== (object ? '}' : ']')) return at(object ? "Expected ',' or '}' after property value" : "Expected ',' or ']' after array element");
      i++;
      open.pop();
    }
  }
};

JSON.parse = { parse(text, reviver) {
  try {
    return parse(text, reviver);
  } catch (e) {
    const why = e instanceof SyntaxError && wrong(`${text}`);
    if (why) e.message = why;
    throw e;
  }
} }.parse;
