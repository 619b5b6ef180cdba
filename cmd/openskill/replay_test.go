package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"openskill/host/app/hosttest"
	"openskill/host/records/replay"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// recorder runs openskill as processes of their own, with a state folder that they share.
type recorder struct {
	t     *testing.T
	repo  string
	state string
	data  string
	env   []string
}

func newRecorder(t *testing.T, env ...string) *recorder {
	t.Helper()
	repo := musttest.Get(filepath.Abs(filepath.Join("..", "..")))(t)
	r := &recorder{t: t, repo: repo, state: t.TempDir(), data: filepath.Join(t.TempDir(), "data")}
	hosttest.Runtimes(t, repo, r.state)
	musttest.Do(t, os.CopyFS(r.data, os.DirFS(filepath.Join(repo, "data"))))
	r.env = append([]string{
		"PATH=" + os.Getenv("PATH"), "OPENSKILL_STATE_DIR=" + r.state, "OPENSKILL_ALLOWED_ROOT=" + r.data,
		"OPENSKILL_SKILLS_DIR=" + filepath.Join(repo, "skills"), "OPENSKILL_RECORD=on",
	}, env...)
	return r
}

// openskill runs a command line and gives its outputs and exit code.
func (r *recorder) openskill(args ...string) (stdout, stderr string, code int) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "openskill", args...)
	cmd.Env, cmd.Dir = r.env, r.state
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		r.t.Fatal(err)
	}
	return out.String(), problems.String(), cmd.ProcessState.ExitCode()
}

// call runs a skill that succeeds in the sandbox, and gives the execution; "" where there
// is no module or runtime of it here.
func (r *recorder) call(args ...string) string {
	r.t.Helper()
	out, problems, code := r.openskill(append([]string{"run"}, args...)...)
	var result skill.Result
	if err := json.Unmarshal([]byte(out), &result); err != nil || code != 0 {
		r.t.Fatalf("%q: exit code %d: %s%s", args, code, out, problems)
	}
	if result.Meta.Runner == skill.CLIPython {
		r.t.Logf("%s ran on the machine's Python: there is no sandboxed form of it here", args[0])
		return ""
	}
	return result.Meta.ExecutionID
}

// again replays an execution, wants an exit code, and gives the report.
func (r *recorder) again(id string, want int) *replay.Report {
	r.t.Helper()
	out, problems, code := r.openskill("replay", id, "--json")
	report := &replay.Report{}
	// On a slow machine a person is told what takes so long.
	problems = strings.Replace(problems, "openskill: getting the skill's runtime ready; the first time takes some seconds\n", "", 1)
	if err := json.Unmarshal([]byte(out), report); err != nil || code != want || (code == 0) != report.Identical || problems != "" {
		r.t.Fatalf("exit code %d, want %d: %s%s", code, want, out, problems)
	}
	return report
}

// TestReplay has the skills that come with openSkill recorded by one process after the
// other, each with workers, and replayed by others.
func TestReplay(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	calls := [][]string{
		{"echo", "--set", "text=hello"},
		{"file_search", "--input", `{"query": "error"}`},
		{"calculator", "--input", `{"numbers": [1, 2, 3.5], "ops": ["mean", "sum"]}`},
		{"log_transform", "--input", `{"input_path": "./data/logs/app.log", "output": "file"}`},
	}
	ids := map[string]string{}
	for _, c := range calls {
		id := r.call(c...)
		if id == "" {
			continue
		}
		ids[c[0]] = id
		if report := r.again(id, 0); report.ExecutionID != id || report.ReplayID == "" || report.Skill != c[0] {
			t.Errorf("%+v", report)
		}
	}
	if len(ids) == 0 {
		t.Skip("no skill has a sandboxed form here")
	}
	id := ids["log_transform"]
	if id == "" {
		return
	}
	out, problems, code := r.openskill("replay", id)
	if code != 0 || !regexp.MustCompile(`^identical: log_transform \d\S+\n  the replay is on record as [0-9a-f-]{36}\n$`).MatchString(out) || problems != "" {
		t.Errorf("exit code %d: %s%s", code, out, problems)
	}
	musttest.Do(t, os.WriteFile(filepath.Join(r.data, "logs", "app.log"), []byte("changed"), 0o600))
	report := r.again(id, 1)
	if len(report.Differences) != 1 || report.Differences[0].Field != "file" || report.Differences[0].Name != "logs/app.log" || report.ReplayID != "" {
		t.Errorf("%+v", report)
	}
	out, _, code = r.openskill("replay", id)
	if code != 1 || !strings.Contains(out, "differs: log_transform") || !strings.Contains(out, "was not run") || !strings.Contains(out, "  file logs/app.log: then a file of ") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// TestReplayWithoutServer has a skill ask a server that it is granted, and is replayed when
// that is gone: what it was answered is on the recording, and nothing is sent.
func TestReplayWithoutServer(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "answer "+strconv.Itoa(int(asked.Add(1))))
	}))
	defer server.Close()
	skills := t.TempDir()
	for name, text := range map[string]string{
		"asks/skill.yaml": "id: asks\nversion: 1.0.0\ndescription: Asks a server.\ntype: wasm\nruntime: python\nentry: main.py\n" +
			"permissions: {http: ['" + server.URL + "']}\ninput_schema: {type: object}\noutput_schema: {type: object}\n",
		"asks/main.py": "import json, sys\njson.load(sys.stdin)\nanswers = []\nfor i in range(2):\n    with open('/dev/http', 'r+b', buffering=0) as f:\n" +
			"        f.write(json.dumps({'url': '" + server.URL + "/'}).encode() + b'\\n')\n        answers.append(f.readall().decode().partition('\\n')[2])\n" +
			"print(json.dumps({'answers': answers}))\n",
	} {
		path := filepath.Join(skills, filepath.FromSlash(name))
		musttest.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)))
	}
	r := newRecorder(t, "OPENSKILL_HTTP_ALLOW="+server.URL, "OPENSKILL_SKILLS_DIR="+skills)
	if _, err := os.Stat(filepath.Join(r.state, "runtimes", "slim", "python.wasm")); err != nil {
		t.Skip("the Python runtime slim is not installed; run make runtimes")
	}
	out, problems, code := r.openskill("run", "asks")
	var result skill.Result
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatalf("%v: %s%s", err, out, problems)
	}
	if code != 0 || result.Meta.Runner != skill.WasmPython || !strings.Contains(string(result.Data), "answer 1") || !strings.Contains(string(result.Data), "answer 2") || asked.Load() != 2 {
		t.Fatalf("exit code %d: %s%s", code, out, problems)
	}
	server.Close()
	r.again(result.Meta.ExecutionID, 0)
	r.env = append(r.env, "OPENSKILL_HTTP_ALLOW=") // it is not even granted any more
	r.again(result.Meta.ExecutionID, 0)
}

// TestReplayOverHTTP has a host record a call, and replay it for who asks over HTTP.
func TestReplayOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	if r.call("echo", "--set", "text=first") == "" {
		t.Skip("echo has no sandboxed form here")
	}
	cmd := exec.CommandContext(t.Context(), "openskill", "serve", "--listen", "127.0.0.1:0")
	cmd.Env, cmd.Dir = r.env, r.state
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	musttest.Do(t, err)
	line, err := bufio.NewReader(out).ReadString('\n')
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(line)
	if err != nil || address == "" {
		t.Fatalf("%q, %v", line, err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}()
	post := func(path, body string, status int, into any) {
		t.Helper()
		answer, err := http.Post(address+path, "application/json", strings.NewReader(body))
		musttest.Do(t, err)
		defer answer.Body.Close()
		b, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != status || json.Unmarshal(b, into) != nil {
			t.Fatalf("%s: status %d, want %d: %s %v", path, answer.StatusCode, status, b, err)
		}
	}
	var result skill.Result
	post("/skills/echo:invoke", `{"input": {"text": "over HTTP"}}`, 200, &result)
	report := &replay.Report{}
	post("/executions/"+result.Meta.ExecutionID+":replay", "", 200, report)
	if !report.Identical || report.ExecutionID != result.Meta.ExecutionID || report.ReplayID == "" {
		t.Errorf("%+v", report)
	}
	var failure struct {
		Error skill.ResultError
	}
	post("/executions/"+report.ReplayID+":replay", "", 404, &failure) // of which there is no recording
	post("/executions/0190a1b2-0000-7000-8000-000000000001:replay", "", 404, &failure)
}

// TestNoReplay holds what is said where there can be none, and that this is no success.
func TestNoReplay(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, "OPENSKILL_RECORD=off")
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no id":           {nil, 2, "needs ID"},
		"two":             {[]string{"a", "b"}, 2, "takes only ID"},
		"what is no id":   {[]string{"nonsense"}, 1, "execution not found"},
		"what never was":  {[]string{"0190a1b2-0000-7000-8000-000000000001"}, 1, "execution not found"},
		"not recorded":    {[]string{r.call("echo", "--set", "text=hello")}, 1, "OPENSKILL_RECORD"},
		"a wrong setting": {[]string{"x", "--state", "/dev/null/x"}, 2, "OPENSKILL_STATE_DIR"},
	} {
		if name == "not recorded" && c.args[0] == "" {
			continue
		}
		out, problems, code := r.openskill(append([]string{"replay"}, c.args...)...)
		if code != c.code || !strings.Contains(problems, c.want) || out != "" || problems == "" {
			t.Errorf("%s: exit code %d, want %d: %s%s", name, code, c.code, out, problems)
		}
	}
}

// TestReplayScript has a script of an Agent Skill recorded, and replayed.
func TestReplayScript(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	folder := filepath.Join(t.TempDir(), "dice")
	for name, text := range map[string]string{
		"SKILL.md":         "---\nname: dice\ndescription: Throws dice.\n---\n\nRun scripts/throw.py.\n",
		"scripts/throw.py": "import random, sys, time\nprint(sys.argv[1:], random.random(), time.time())\nopen('thrown.txt', 'w').write(str(random.random()))\n",
	} {
		path := filepath.Join(folder, filepath.FromSlash(name))
		musttest.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)))
	}
	out, problems, code := r.openskill("script", folder, "throw.py", "--", "two")
	if code != 0 || !strings.HasPrefix(out, "['two'] 0.") {
		if strings.Contains(problems, "runtime") {
			t.Skip(problems)
		}
		t.Fatalf("exit code %d: %s%s", code, out, problems)
	}
	list, _, _ := r.openskill("audit", "list", "--json")
	id := regexp.MustCompile(`"execution_id": ?"([0-9a-f-]{36})"`).FindStringSubmatch(list)
	if id == nil {
		t.Fatal(list)
	}
	r.env = append(r.env, "OPENSKILL_AGENT_SKILLS="+filepath.Dir(folder))
	if report := r.again(id[1], 0); report.Skill != "dice" {
		t.Errorf("%+v", report)
	}
}
