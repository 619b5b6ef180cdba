// A small skill in JavaScript: it is measured how soon it answers.
const request = JSON.parse(std.in.readAsString());
const words = request.input.text.toLowerCase().match(/\w+/g);
const counts = new Map();
for (const w of words) counts.set(w, (counts.get(w) ?? 0) + 1);
console.log(JSON.stringify({ words: [...counts].sort((a, b) => b[1] - a[1]).slice(0, 3) }));
