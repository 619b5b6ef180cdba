// There is no Intl. What formats and compares for a language is right for American
// English (the set of docs/author-javascript.md), and everything else is refused.
const locale = (() => {
  const { apply } = Reflect;
  // Frames of the prelude are not for the script's author.
  const refuse = (from, what, instead) => {
    const error = new RangeError(`${what} is not available in the sandbox, which has no Intl: ${instead}`);
    Error.captureStackTrace(error, from);
    throw error;
  };
  // languageOf is the first language asked for, "en-US" where none is.
  const languageOf = (locales) => {
    if (locales === undefined) return 'en-US';
    return String((Array.isArray(locales) ? locales[0] : locales) ?? 'en-US');
  };
  const american = (from, name, locales) => {
    const language = languageOf(locales);
    if (!/^en(-US)?$/i.test(language)) refuse(from, `${name} for ${JSON.stringify(language)}`, 'use "en-US", or format by hand');
  };
  // only gives the options that are set, and refuses others than those named.
  const only = (from, name, options, known) => {
    if (options === undefined) return {};
    const set = {};
    for (const key in Object(options)) {
      if (options[key] === undefined) continue;
      if (!known.includes(key)) refuse(from, `${name} with the option ${key}`, known.length > 0 ? `the options are ${known.join(', ')}; format the rest by hand` : 'format by hand');
      set[key] = options[key];
    }
    return set;
  };

  // Numbers. The digits are the shortest that are read as the number, and are rounded
  // as they stand: 1.005 to two digits is 1.01.
  const rounded = (digits, point, most) => {
    // digits with the decimal point after the first "point" of them, to "most" behind it.
    if (point < 0) [digits, point] = ['0'.repeat(-point) + digits, 0];
    if (digits.length - point <= most) return [digits.slice(0, point).padEnd(point, '0'), digits.slice(point)];
    const keep = point + most;
    let all = BigInt(`0${digits.slice(0, keep)}`) + (digits[keep] >= '5' ? 1n : 0n);
    all = String(all).padStart(keep, '0');
    const whole = all.length - most;
    return [all.slice(0, whole), all.slice(whole)];
  };
  const grouped = (whole) => whole.replace(/^0+(?=\d)/, '').replace(/\B(?=(\d{3})+$)/g, ',');
  const symbols = { USD: '$', EUR: '€', GBP: '£', JPY: '¥', INR: '₹', CNY: 'CN¥', KRW: '₩', CAD: 'CA$', AUD: 'A$', BRL: 'R$', MXN: 'MX$' };
  const numeral = (from, value, locales, options) => {
    const name = 'toLocaleString';
    american(from, name, locales);
    const o = only(from, name, options, ['style', 'currency', 'minimumFractionDigits', 'maximumFractionDigits', 'useGrouping']);
    const style = String(o.style ?? 'decimal');
    if (!['decimal', 'percent', 'currency'].includes(style)) refuse(from, `${name} with the style ${style}`, 'the styles are decimal, percent and currency');
    if (o.useGrouping !== undefined && typeof o.useGrouping !== 'boolean') refuse(from, `${name} with useGrouping ${o.useGrouping}`, 'useGrouping is true or false');
    let sign = '', currency = '';
    if (style === 'currency') {
      if (o.currency === undefined) throw new TypeError('Currency code is required with currency style.');
      const code = String(o.currency).toUpperCase();
      if (!Object.hasOwn(symbols, code)) refuse(from, `${name} with the currency ${code}`, `the currencies are ${Object.keys(symbols).join(', ')}`);
      currency = symbols[code];
    }
    const usual = style === 'percent' ? [0, 0] : style === 'decimal' ? [0, 3] : ['¥', '₩'].includes(currency) ? [0, 0] : [2, 2];
    const count = (key) => {
      if (o[key] === undefined) return undefined;
      const n = Number(o[key]);
      if (!(n >= 0 && n <= 20)) throw new RangeError(`${key} value is out of range.`);
      return Math.floor(n);
    };
    let least = count('minimumFractionDigits'), most = count('maximumFractionDigits');
    if (least === undefined && most === undefined) [least, most] = usual;
    least ??= Math.min(usual[0], most);
    most ??= Math.max(usual[1], least);
    if (least > most) throw new RangeError('maximumFractionDigits value is out of range.');
    let digits, point;
    if (typeof value === 'bigint') {
      sign = value < 0n ? '-' : '';
      digits = String(value).replace('-', '');
      point = digits.length;
    } else {
      if (Number.isNaN(value)) return `${currency}NaN${style === 'percent' ? '%' : ''}`;
      sign = value < 0 || Object.is(value, -0) ? '-' : '';
      if (!Number.isFinite(value)) return `${sign}${currency}∞${style === 'percent' ? '%' : ''}`;
      const [mantissa, exponent] = Math.abs(value).toExponential().split('e');
      digits = mantissa.replace('.', '');
      point = value === 0 ? 1 : Number(exponent) + 1;
    }
    if (style === 'percent') point += 2;
    let [whole, fraction] = rounded(digits, point, most);
    fraction = fraction.replace(/0+$/, '').padEnd(least, '0');
    whole = whole || '0';
    whole = o.useGrouping === false ? whole.replace(/^0+(?=\d)/, '') : grouped(whole);
    return `${sign}${currency}${whole}${fraction && `.${fraction}`}${style === 'percent' ? '%' : ''}`;
  };
  // Dates. The sandbox's own time zone is UTC.
  const getTime = Date.prototype.getTime;
  const parts = (from, name, date, locales, options) => {
    const time = apply(getTime, date, []);
    american(from, name, locales);
    const { timeZone } = only(from, name, options, ['timeZone']);
    if (timeZone !== undefined && !/^(UTC|GMT|Etc\/UTC)$/i.test(timeZone)) refuse(from, `${name} for the time zone ${JSON.stringify(timeZone)}`, 'use "UTC", or add the offset by hand');
    if (Number.isNaN(time)) return ['Invalid Date'];
    const d = new Date(time), two = (n) => String(n).padStart(2, '0');
    if (d.getUTCFullYear() < 1) refuse(from, `${name} of a year before 1`, 'use toISOString()');
    const hour = d.getUTCHours();
    return [`${d.getUTCMonth() + 1}/${d.getUTCDate()}/${d.getUTCFullYear()}`,
      `${hour % 12 || 12}:${two(d.getUTCMinutes())}:${two(d.getUTCSeconds())} ${hour < 12 ? 'AM' : 'PM'}`];
  };

  // Texts, in the order of Unicode's collation: all letters first, then accents, then
  // case. It is the order of these languages; others have letters of their own.
  const sharing = /^(en|de|fr|it|nl|pt)(-(?!CA$)[A-Z]{2})?$/i;
  const order = '\t\n\v\f\r _-,;:!?.\'"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz';
  const accents = '\u0301\u0300\u0306\u0302\u030c\u030a\u0308\u030b\u0303\u0307\u0327\u0328\u0304';
  const ranks = new Map([...order].map((c, i) => [c, i + 1]));
  const keysOf = (from, text, numeric) => {
    const letters = [], marks = [], cases = [];
    const all = text.normalize('NFD');
    for (let i = 0; i < all.length; i++) {
      const c = all[i], rank = ranks.get(c.toLowerCase());
      if (numeric && c >= '0' && c <= '9') {
        const number = /^\d+/.exec(all.slice(i))[0], n = number.replace(/^0+(?=\d)/, '');
        letters.push(ranks.get('0'), n.length, ...Array.from(n, Number));
        i += number.length - 1;
      } else if (rank !== undefined) {
        letters.push(rank);
      } else if (accents.includes(c) && marks.length > 0) {
        marks.push(accents.indexOf(c) + 1);
        continue;
      } else {
        refuse(from, `localeCompare of ${JSON.stringify(String.fromCodePoint(text.codePointAt(text.indexOf(c))))}`, 'compare with < and >, or by a table of your own');
      }
      marks.push(0);
      cases.push(c === c.toLowerCase() ? 0 : 1);
    }
    return [letters, marks, cases];
  };
  const compared = (a, b) => {
    for (let i = 0; i < a.length && i < b.length; i++) if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1;
    return Math.sign(a.length - b.length);
  };
  const levels = { base: [0], accent: [0, 1], case: [0, 2], variant: [0, 1, 2] };
  const compare = (from, text, that, locales, options) => {
    const a = String(text), b = String(that);
    const language = languageOf(locales);
    if (!sharing.test(language)) refuse(from, `localeCompare for ${JSON.stringify(language)}`, 'use "en", or compare by a table of your own');
    const { sensitivity = 'variant', numeric = false } = only(from, 'localeCompare', options, ['sensitivity', 'numeric']);
    if (!Object.hasOwn(levels, sensitivity)) throw new RangeError(`Value ${sensitivity} out of range for Intl.Collator options property sensitivity`);
    if (a === b) return 0;
    const left = keysOf(from, a, numeric), right = keysOf(from, b, numeric);
    for (const level of levels[sensitivity]) {
      const order = compared(left[level], right[level]);
      if (order !== 0) return order;
    }
    return 0;
  };

  return {
    number: (v, [locales, options], { called }) => numeral(called, apply(Number.prototype.valueOf, v, []), locales, options),
    bigint: (v, [locales, options], { called }) => numeral(called, apply(BigInt.prototype.valueOf, v, []), locales, options),
    list: (v, args) => Array.from(v, (e) => e?.toLocaleString(...args) ?? '').join(','),
    date: (v, [locales, options], { name, called }) => {
      const all = parts(called, name, v, locales, options);
      return { toLocaleString: all.join(', '), toLocaleDateString: all[0], toLocaleTimeString: all.at(-1) }[name];
    },
    text: (v, args, { name, own, called }) => {
      if (name === 'localeCompare') return compare(called, v, ...args);
      const language = languageOf(args[0]);
      if (/^(tr|az|lt|el|hy)\b/i.test(language)) refuse(called, `${name} for ${JSON.stringify(language)}`, 'use toUpperCase or toLowerCase, and change the other letters by hand');
      return apply(own, v, []);
    },
  };
})();
