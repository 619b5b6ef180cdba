// One call on standard input, one answer on standard output.
import * as std from 'std';
import { changes } from './diff.mjs';

const { input } = JSON.parse(std.in.readAsString());
const limit = input.limit ?? 1000;

const list = [];
let truncated = false;
for (const change of changes(input.before, input.after)) {
  truncated = list.length === limit;
  if (truncated) break;
  list.push(change);
}
console.log(JSON.stringify({ equal: list.length === 0, changes: list, truncated }));
