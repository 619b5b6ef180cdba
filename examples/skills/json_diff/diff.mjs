// Yields what changes one JSON value into another, in the order of the first's
// keys, then the second's.
export function* changes(before, after, path = '') {
  if (!isContainer(before) || !isContainer(after) || Array.isArray(before) !== Array.isArray(after)) {
    if (before !== after) yield { op: 'change', path, before, after };
    return;
  }
  for (const key of Object.keys(before)) {
    const at = `${path}/${escape(key)}`;
    if (Object.hasOwn(after, key)) yield* changes(before[key], after[key], at);
    else yield { op: 'remove', path: at, before: before[key] };
  }
  for (const key of Object.keys(after))
    if (!Object.hasOwn(before, key)) yield { op: 'add', path: `${path}/${escape(key)}`, after: after[key] };
}

const isContainer = (value) => typeof value === 'object' && value !== null;
const escape = (key) => key.replaceAll('~', '~0').replaceAll('/', '~1');
