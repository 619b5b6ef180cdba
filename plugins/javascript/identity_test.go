package javascript

import (
	"testing"
)

// A script for Node sees the machine and the user that Python's pwd and platform and the shell's
// id and uname name.
func TestNodeNamesTheSandboxAsPythonAndTheShellDo(t *testing.T) {
	needsNode(t)
	c := script(t, "", "run.js", `const os = require('os'), u = os.userInfo();
console.log(os.hostname(), os.type(), os.release(), os.version(), os.machine());
console.log(u.username, u.uid, u.gid, u.homedir, u.shell, process.getuid(), process.geteuid(), process.getgid(), process.getegid(), process.getgroups().join());
console.log(os.homedir(), os.tmpdir());
`)
	c.Script, c.Entry = true, "run.js"
	c.Limits.Memory = 64 << 20
	r := running(t)(t, c)
	const want = "sandbox Linux 5.15.0-sandbox #1 SMP PREEMPT sandbox x86_64\nskill 1000 1000 /tmp /bin/bash 1000 1000 1000 1000 1000\n/tmp /tmp\n"
	if r.ExitCode != 0 || string(r.Stdout) != want {
		t.Errorf("exit code %d %s\n%s%s", r.ExitCode, r.Code, r.Stdout, r.Stderr)
	}
}
