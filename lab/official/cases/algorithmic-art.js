// can: write a page with another seed from its template
// cannot: show it: a browser
const fs = require("fs");
const page = fs.readFileSync("/mnt/skills/algorithmic-art/templates/viewer.html", "utf8");
const changed = page.replace(/seed: \d+/g, "seed: 4242");
if (changed === page) throw new Error("the template has no seed");
fs.writeFileSync("art.html", changed);
