package javascript

import "testing"

// A script of an Agent Skill works in its skill's folder, as its own.
func TestPrograms(t *testing.T) {
	run := running(t)
	c := script(t, "", "notes.txt", "hi", "scripts/tool.mjs", `
import * as std from 'std';
import * as os from 'os';
import { value } from './helper.mjs';
console.log(JSON.stringify(scriptArgs), os.getcwd()[0], std.loadFile('notes.txt'), value, std.in.readAsString(), JSON.stringify(os.readdir('.')[0].sort()));
const f = std.open('scripts/out.txt', 'w'); f.puts(scriptArgs[1]); f.close();
std.exit(3);
`, "scripts/helper.mjs", "export const value = 1;\n")
	c.Script, c.SkillID, c.Entry, c.Stdin = true, "my-skill", "scripts/tool.mjs", []byte("input")
	for _, word := range []string{"one", "two"} {
		c.Args = []string{word, "b c"}
		r := run(t, c)
		want := `["/skills/my-skill/scripts/tool.mjs","` + word + `","b c"] /skills/my-skill hi 1 input [".","..","main.js","notes.txt","scripts"]` + "\n"
		if r.Code != "" || r.ExitCode != 3 || string(r.Stdout) != want {
			t.Errorf("code %q, exit code %d, stdout %q, stderr:\n%s", r.Code, r.ExitCode, r.Stdout, r.Stderr)
		}
		if len(r.Artifacts) != 1 || r.Artifacts[0].Name != "scripts/out.txt" || string(r.Artifacts[0].Data) != word {
			t.Errorf("files %v", r.Artifacts)
		}
	}
}
