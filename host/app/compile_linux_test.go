package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"openskill/host/app/hosttest"
	"openskill/host/workers"
	"openskill/internal/digest"
	"openskill/internal/musttest"
	"openskill/plugins/javascript"
	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/wasmtest"
)

func sourceOf(module []byte, trusted bool) *workers.Source {
	of := wasm.Digest(module)
	return &workers.Source{Module: skill.Module{Digest: of, File: of, Trusted: trusted, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(module)), nil }}}
}

// quickjs is the module that runs scripts in JavaScript.
func quickjs(t *testing.T) []byte {
	t.Helper()
	r := javascript.New(nil, nil)
	defer r.Close()
	plan := musttest.Get(r.Prepare(t.Context(), &skill.Spec{}))(t)
	f := musttest.Get(plan.Module.Open())(t)
	return musttest.Get(io.ReadAll(f))(t)
}

// TestCompilersAreLimited looks at what the kernel holds a compiling process of a host
// to, once the process has asked for it.
func TestCompilersAreLimited(t *testing.T) {
	hosttest.NoRace(t)
	large := quickjs(t)
	for _, c := range []struct {
		name    string
		trusted bool
		want    map[string]uint64
	}{
		{"a stranger's module", false, map[string]uint64{"cpu time": 10, "data size": 768 << 20, "file size": 768 << 20, "core file size": 0, "locked memory": 0}},
		{"a runtime", true, map[string]uint64{"cpu time": 600, "data size": 4 << 30, "file size": 4 << 30, "core file size": 0, "locked memory": 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := openHost(t, settings(t, map[string]string{"workers-spare": "0"}))
			compiled := make(chan struct{})
			go func() {
				defer close(compiled)
				_, _ = h.workers.modules.Ensure(t.Context(), sourceOf(large, c.trusted))
			}()
			var limits string
			for limits == "" {
				select {
				case <-compiled:
					t.Fatal("the process was over before it was seen")
				case <-time.After(time.Millisecond): // nobody tells that a process has begun
					limits = limitsOf(compileCommand)
				}
			}
			for what, want := range c.want {
				if line := fmt.Sprintf("Max %s +%d +%d ", what, want, want); !regexp.MustCompile(line).MatchString(limits) {
					t.Errorf("no %q in\n%s", line, limits)
				}
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			<-compiled
		})
	}
}

// TestWorkersAreLimited looks at what the kernel holds a worker of a host to. A file in
// memory is large enough for any image, whose memory is the next power of two.
func TestWorkersAreLimited(t *testing.T) {
	hosttest.NoRace(t)
	for name, c := range map[string]struct {
		flags map[string]string
		files uint64
	}{
		"as large as a worker may be": {map[string]string{"worker-memory-mb": "3000"}, 3000 << 20},
		"as large as an image may be": {map[string]string{"worker-memory-mb": "128", "max-memory-mb": "600", "memory-mb": "16"}, 1200 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			c.flags["workers-spare"] = "0"
			h := openHost(t, settings(t, c.flags))
			if r := invoke(t, h, "quick"); !r.Success {
				t.Fatalf("%+v", r.Error)
			}
			for _, pid := range h.workers.pool.Stats().Pids {
				limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
				if line := fmt.Sprintf("Max file size +%d +%d ", c.files, c.files); err != nil || !regexp.MustCompile(line).Match(limits) {
					t.Errorf("no %q in\n%s, %v", line, limits, err)
				}
			}
		})
	}
}

// limitsOf are those of a child of this process that does what, and has limited its
// time; "" if there is none.
func limitsOf(what string) string {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for _, pid := range strings.Fields(string(children)) {
			args, _ := os.ReadFile("/proc/" + pid + "/cmdline")
			limits, _ := os.ReadFile("/proc/" + pid + "/limits")
			if bytes.Contains(args, []byte("\x00"+what+"\x00")) && len(limits) > 0 && !regexp.MustCompile(`Max cpu time +unlimited`).Match(limits) {
				return string(limits)
			}
		}
	}
	return ""
}

// TestFullDisk has modules compiled while there is less and less room for what is made
// of them. What is kept is whole; what is not says why, is nobody's fault, and works
// once there is room.
func TestFullDisk(t *testing.T) {
	hosttest.NoRace(t)
	s := settings(t, map[string]string{"workers-spare": "0"})
	musttest.Do(t, os.MkdirAll(s.StateDir, 0o700))
	if err := syscall.Mount("tmpfs", s.StateDir, "tmpfs", 0, "size=4m,mode=700"); err != nil {
		t.Skipf("a small disk is needed, which this test may not have: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(s.StateDir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	h := openHost(t, s)
	defer h.Close()
	filler, failed, kept := filepath.Join(s.StateDir, "filler"), 0, 0
	for i, free := range []int64{0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 64, 96, 128, 256} {
		b := wasmtest.New()
		b.Memory(1)
		b.Data(0, strings.Repeat(fmt.Sprintf("text %5d ", i), 1000))
		b.Command(wasmtest.Code(strings.Repeat(string(wasmtest.I32(1)+wasmtest.Drop), 100)))
		module := b.Bytes()
		fill(t, filler, free<<10)
		_, err := h.workers.modules.Ensure(t.Context(), sourceOf(module, false))
		switch _, ok := errors.AsType[*skill.Error](err); {
		case ok:
			t.Errorf("%d KiB: the module is to blame: %v", free, err)
		case err != nil:
			failed++
			t.Logf("%d KiB: %v", free, err)
		default:
			kept++
		}
		musttest.Do(t, os.Remove(filler))
		if _, err := h.workers.modules.Ensure(t.Context(), sourceOf(module, false)); err != nil {
			t.Errorf("%d KiB, and then room: %v", free, err)
		}
		view := filepath.Join(s.StateDir, fmt.Sprint("view", i)) // files are shown by links
		if err := h.workers.modules.Link(view, wasm.Digest(module), false); err != nil || left(view) != 3 {
			t.Errorf("%d KiB: %d files are kept, %v", free, left(view), err)
		}
	}
	if failed < 3 || kept < 3 {
		t.Errorf("%d modules failed and %d were kept: this shows little", failed, kept)
	}
	if r := invoke(t, h, "quick"); !r.Success {
		t.Errorf("a call in the end: %+v", r.Error)
	}
}

// fill leaves so many bytes of a disk.
func fill(t *testing.T, path string, free int64) {
	t.Helper()
	var disk syscall.Statfs_t
	musttest.Do(t, syscall.Statfs(filepath.Dir(path), &disk))
	n := int64(disk.Bavail)*disk.Bsize - free
	musttest.Do(t, os.WriteFile(path, make([]byte, max(n, 0)), 0o600))
}

// TestModuleOfAPlan holds that the module of a plan is that of its own entry, and that what
// somebody else has verified is not read again.
func TestModuleOfAPlan(t *testing.T) {
	hosttest.NoRace(t)
	h := openHost(t, settings(t, map[string]string{"workers-spare": "0"}))
	s := musttest.Get(h.skills.Now().Get("quick", ""))(t)
	_, plan, err := h.plan(t.Context(), s, false)
	if err != nil || plan.Module.Digest != plan.Module.File || plan.Module.Trusted || plan.Missing != nil {
		t.Fatalf("%+v, %v", plan, err)
	}
	before := digest.Hashed()
	r := musttest.Get(h.runners.Get(s.Primary.Kind))(t)
	spec := s.Spec(s.Primary, "acme")
	spec.Module = "sha256:" + strings.Repeat("0", 64)
	if plan, err = r.Prepare(t.Context(), spec); err != nil || plan.Module.Digest != spec.Module || digest.Hashed() != before {
		t.Errorf("%+v, %v", plan, err)
	}
	// And nothing runs that is not that.
	if _, err := h.workers.modules.Ensure(t.Context(), &workers.Source{Module: plan.Module}); skill.CodeOf(err) != skill.Conflict {
		t.Errorf("a file that is not what was admitted: %v", err)
	}
}

// TestWorkersSeeTheirOwn holds that a worker can read no other worker's compiled modules,
// whose code they are, whether it was started for its tenant or waited for one.
func TestWorkersSeeTheirOwn(t *testing.T) {
	hosttest.NoRace(t)
	for _, by := range []string{"tenant", "skill"} {
		for _, spares := range []string{"0", "1"} {
			t.Run(by+" with spares "+spares, func(t *testing.T) {
				h := openHost(t, settings(t, map[string]string{"workers": by, "workers-spare": spares}))
				for range 2 {
					if r := invoke(t, h, "quick"); !r.Success {
						t.Fatalf("%+v", r.Error)
					}
				}
				for _, pid := range h.workers.pool.Stats().Pids {
					args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
					if err != nil {
						continue // it has ended
					}
					words := strings.Split(string(args), "\x00")
					for i, word := range words {
						if word != "--read" {
							continue
						}
						if rel, err := filepath.Rel(words[i+1], h.workers.dir); err != nil || filepath.IsLocal(rel) {
							t.Errorf("a worker may read %s, where those of others are", words[i+1])
						}
					}
				}
			})
		}
	}
}

// TestWorkersSeeApprovedCopies holds that the copies which approved scripts run from are
// read by those workers alone that may read the operator's skills: one of a single skill
// has its own copy, from which its script runs, and one of another tenant's upload has none.
func TestWorkersSeeApprovedCopies(t *testing.T) {
	hosttest.NoRace(t)
	for _, by := range []string{"tenant", "skill"} {
		t.Run(by, func(t *testing.T) {
			h, _ := withAgentSkill(t, map[string]string{"workers": by, "workers-spare": "0", "script-approval": "version"})
			run := func() *skill.Result {
				r, _ := h.RunScript(t.Context(), skill.Local(), skill.ScriptRequest{Skill: "greeter", Script: "greet.js"})
				return r
			}
			id, _ := run().Error.Details["approval_id"].(string)
			musttest.Get(h.approvals.Decide(t.Context(), skill.Local(), id, true))(t)
			if r := run(); !r.Success {
				t.Errorf("an approved script: %+v", r.Error)
			}
			d := state{root: h.settings.StateDir}
			own, other := filepath.Join(approvedDir(d.root), "own"), filepath.Join(approvedDir(d.root), "other")
			for name, c := range map[string]struct {
				call       skill.Call
				own, other bool
			}{
				"a script":                 {skill.Call{Tenant: "a", Folder: own}, true, by == "tenant"},
				"an operator's skill":      {skill.Call{Tenant: "a", Folder: filepath.Join(h.roots[0].Path, "greeter")}, by == "tenant", by == "tenant"},
				"an upload":                {skill.Call{Tenant: "a", Folder: filepath.Join(uploadsDir(h.settings.StateDir), "t-a", "x")}, by == "tenant", by == "tenant"},
				"another tenant's upload":  {skill.Call{Tenant: "a", Folder: filepath.Join(uploadsDir(h.settings.StateDir), "t-b", "x")}, false, false},
				"a program about programs": {skill.Call{Tenant: "a", Folder: AnalysisDir(d.root)}, by == "tenant", by == "tenant"},
			} {
				list := h.foldersOf(h.settings, d)("", &c.call)
				reads := func(path string) bool {
					return slices.ContainsFunc(list, func(dir string) bool {
						rel, err := filepath.Rel(dir, path)
						return err == nil && filepath.IsLocal(rel)
					})
				}
				if !reads(c.call.Folder) || reads(own) != c.own || reads(other) != c.other {
					t.Errorf("%s: reads its copy: %v, another one: %v, of %q", name, reads(own), reads(other), list)
				}
			}
		})
	}
}

// TestDamagedCode holds that a module whose code was damaged on the disk is compiled
// again when a worker cannot load it, and the call is answered.
func TestDamagedCode(t *testing.T) {
	hosttest.NoRace(t)
	s := settings(t, map[string]string{"workers-spare": "0"})
	h := openHost(t, s)
	if r := invoke(t, h, "quick"); !r.Success {
		t.Fatalf("%+v", r.Error)
	}
	musttest.Do(t, h.Close())
	damaged := 0
	code, _ := filepath.Glob(filepath.Join(s.StateDir, "modules", "*", "*", "code", "*", "*"))
	for _, path := range code {
		b := musttest.Get(os.ReadFile(path))(t)
		b[len(b)/2] ^= 1
		musttest.Do(t, os.WriteFile(path, b, 0o600))
		damaged++
	}
	h = openHost(t, s)
	for range 2 {
		if r := invoke(t, h, "quick"); !r.Success || damaged == 0 {
			t.Errorf("%+v, after %d files were damaged", r.Error, damaged)
		}
	}
}
