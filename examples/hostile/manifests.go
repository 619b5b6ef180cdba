package hostile

import (
	"fmt"
	"strings"

	"openskill/sdk/skill"
)

// manifests are the cases of what a manifest may ask: native code, YAML that hurts its
// reader, trust that nobody gave.
func manifests() []Case {
	var all []Case
	add := func(name, text string) {
		c := Case{
			Name: name, Promise: Contained, Limit: "the reader of manifests",
			Refused: []skill.Code{skill.InvalidManifest, skill.ArchiveRejected},
		}
		c.Upload = func() *Upload {
			m := strings.ReplaceAll(text, "ID", string(c.ID()))
			return &Upload{ID: c.ID(), Archive: Zip(map[string]string{"skill.yaml": m, "main.py": "print('{}')\n", entry: string(prints("{}")())})}
		}
		all = append(all, c)
	}
	const head = "id: ID\nversion: 0.1.0\ndescription: A hostile case that a host must survive.\n"
	const module = head + "type: wasm\nruntime: wasi\nentry: main.wasm\n"
	add("P02 the CLI runner", head+"type: cli\nruntime: python\nentry: main.py\n")
	add("P02 the CLI runner as a fallback", module+"fallback: {type: cli, runtime: python, entry: main.py}\n")
	add("P02 trust", module+"trust: builtin\n")
	add("P02 an entry outside of the folder", head+"type: wasm\nruntime: wasi\nentry: ../../../../bin/sh\n")
	add("P02 an absolute entry", head+"type: wasm\nruntime: wasi\nentry: /bin/sh\n")
	add("P02 an id that is a path", strings.Replace(module, "id: ID", "id: ../../etc", 1))
	add("P02 a version that is a path", strings.Replace(module, "0.1.0", "../../0.1.0", 1))

	var keys strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&keys, "k%d: 1\n", i)
	}
	add("U06 3,000 keys", module+keys.String())
	add("U06 a million keys", module+"limits: {"+strings.Repeat("a: 1, ", 1_000_000)+"}\n")
	add("U06 aliases of aliases", module+"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n")
	add("U06 depth of 20,000", module+"input_schema: "+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)+"\n")
	add("U06 a second document", module+"---\ntype: cli\n")
	add("U06 a tag", module+"build: !!python/object/apply:os.system {language: go}\n")
	add("U06 a key twice", module+"type: wasm\n")
	add("U06 a schema that points to a file", module+`input_schema: {"$ref": "file:///etc/passwd"}`+"\n")
	add("U06 a schema that points to the network", module+`input_schema: {"$ref": "http://127.0.0.1:1/x"}`+"\n")
	add("U06 a pattern that never ends", module+`input_schema: {"type": "object", "properties": {"a": {"type": "string", "pattern": "`+strings.Repeat("(a+)+", 20_000)+`"}}}`+"\n")
	return all
}
