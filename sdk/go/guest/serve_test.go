package guest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

type nothing struct{}

// serve runs a function on an empty input, and gives what it leaves.
func serve[Out any](t *testing.T, root string, run func(*Call, nothing) (Out, error)) (code int, stdout, stderr string) {
	t.Helper()
	var out, logs bytes.Buffer
	code = ServeOn(&Streams{In: strings.NewReader(`{"input": {}}`), Out: &out, Err: &logs, Root: root}, run)
	if strings.Count(out.String(), "\n") != 1 || !json.Valid(out.Bytes()) {
		t.Errorf("standard output is not one line of JSON: %q", &out)
	}
	return code, out.String(), logs.String()
}

const hidden = `{"success":false,"data":null,"error":{"code":"INTERNAL","message":"the skill failed; its standard error says why","details":{"reason":"failed"}}}` + "\n"

type stubborn struct{}

func (stubborn) MarshalJSON() ([]byte, error) { return nil, errors.New("never") }

func TestAnswers(t *testing.T) {
	t.Parallel()
	type numbers struct {
		List []map[string]*float64 `json:"list"`
	}
	nan, inf := math.NaN(), math.Inf(-1)
	var none *numbers
	for name, c := range map[string]struct {
		run            func(*Call, nothing) (any, error)
		stdout, stderr string // stderr: its beginning
	}{
		"a struct":        {func(*Call, nothing) (any, error) { return numbers{}, nil }, `{"success":true,"data":{"list":null},"error":null}` + "\n", ""},
		"text with <":     {func(*Call, nothing) (any, error) { return map[string]string{"a": "<\xff"}, nil }, `{"success":true,"data":{"a":"<\ufffd"},"error":null}` + "\n", ""},
		"NaN":             {func(*Call, nothing) (any, error) { return numbers{[]map[string]*float64{{}, {"x": &nan}}}, nil }, number("data.list[1].x"), ""},
		"infinite":        {func(*Call, nothing) (any, error) { return map[string]any{"b": 1, "a": inf}, nil }, number("data.a"), ""},
		"nil":             {func(*Call, nothing) (any, error) { return nil, nil }, noObject, ""},
		"a nil pointer":   {func(*Call, nothing) (any, error) { return none, nil }, noObject, ""},
		"a nil map":       {func(*Call, nothing) (any, error) { return map[string]any(nil), nil }, noObject, ""},
		"a list":          {func(*Call, nothing) (any, error) { return []int{1}, nil }, noObject, ""},
		"text":            {func(*Call, nothing) (any, error) { return "x", nil }, noObject, ""},
		"no JSON":         {func(*Call, nothing) (any, error) { return map[string]any{"a": stubborn{}}, nil }, hidden, "ERROR uncaught: json: error calling MarshalJSON"},
		"a channel":       {func(*Call, nothing) (any, error) { return map[string]any{"a": make(chan int)}, nil }, hidden, "ERROR uncaught: json: unsupported type"},
		"an error":        {func(*Call, nothing) (any, error) { return nil, errors.New("open /home/me:\nsecret") }, hidden, `ERROR uncaught: open /home/me:\u000asecret` + "\n"},
		"wrapped":         {func(*Call, nothing) (any, error) { return nil, fmt.Errorf("why: %w", Errorf(NotFound, "no %s", "a")) }, `{"success":false,"data":null,"error":{"code":"NOT_FOUND","message":"no a"}}` + "\n", ""},
		"without a code":  {func(*Call, nothing) (any, error) { return nil, &Error{Message: "x"} }, hidden, "ERROR uncaught: x\n"},
		"NaN in details":  {func(*Call, nothing) (any, error) { return nil, &Error{"X", "x", map[string]any{"a": []float64{nan}}} }, number("details.a[0]"), ""},
		"odd details":     {func(*Call, nothing) (any, error) { return nil, &Error{"X", "x", map[string]any{"a": stubborn{}}} }, hidden, "ERROR uncaught: json:"},
		"a panic":         {func(*Call, nothing) (any, error) { panic("boom") }, hidden, "ERROR uncaught: boom\ngoroutine "},
		"an error thrown": {func(*Call, nothing) (any, error) { panic(Errorf(NotFound, "x")) }, hidden, "ERROR uncaught: x\ngoroutine "},
		"an index":        {func(*Call, nothing) (any, error) { var list []int; return list[len(list)], nil }, hidden, "ERROR uncaught: runtime error: index out of range [0] with length 0\n"},
		"data and error":  {func(*Call, nothing) (any, error) { return numbers{}, Errorf(Conflict, "x") }, `{"success":false,"data":null,"error":{"code":"CONFLICT","message":"x"}}` + "\n", ""},
	} {
		code, stdout, stderr := serve(t, "", c.run)
		if stdout != c.stdout || !strings.HasPrefix(stderr, c.stderr) || (code == 0) != strings.HasPrefix(stdout, `{"success":true`) {
			t.Errorf("%s: exit code %d, %s, %s\nwant %s, %s", name, code, stdout, stderr, c.stdout, c.stderr)
		}
	}
}

func number(field string) string {
	return `{"success":false,"data":null,"error":{"code":"INTERNAL","message":"` + field + `: NaN and infinite numbers are no JSON","details":{"field":"` + field + `","reason":"number"}}}` + "\n"
}

const noObject = `{"success":false,"data":null,"error":{"code":"INTERNAL","message":"data: must be an object","details":{"field":"data","reason":"type"}}}` + "\n"

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
func (broken) Read([]byte) (int, error)  { return 0, io.ErrUnexpectedEOF }

func TestBrokenStreams(t *testing.T) {
	t.Parallel()
	run := func(call *Call, _ nothing) (nothing, error) { call.Info("x"); return nothing{}, nil }
	if code := ServeOn(&Streams{In: strings.NewReader(`{"input": {}}`), Out: broken{}, Err: broken{}}, run); code != 1 {
		t.Errorf("an answer that cannot be written: exit code %d", code)
	}
	var out bytes.Buffer
	if code := ServeOn(&Streams{In: broken{}, Out: &out, Err: broken{}}, run); code != 1 || !strings.Contains(out.String(), "malformed") {
		t.Errorf("input that cannot be read: exit code %d, %s", code, &out)
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	_, _, got := serve(t, "", func(call *Call, _ nothing) (nothing, error) {
		call.Debug("a\r\n\x1b[31m\u009b\u2028\xff😀", "n", 1, "err", io.EOF, "f", math.Inf(1), "list", []string{"\u2029<"})
		call.Warn("odd", "lonely")
		call.Error("no key", 7, "a", 1)
		return nothing{}, nil
	})
	want := `DEBUG a\u000d\u000a\u001b[31m\u009b\u2028` + "\uFFFD😀" + ` {"n":1,"err":"EOF","f":"+Inf","list":["\u2029<"]}
WARN odd {"!key":"lonely"}
ERROR no key {"!key":7,"a":1}
`
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	_, _, got = serve(t, "", func(call *Call, _ nothing) (nothing, error) {
		var all sync.WaitGroup
		for range 8 {
			all.Add(1)
			go func() {
				defer all.Done()
				call.Info("from a goroutine")
			}()
		}
		all.Wait()
		return nothing{}, nil
	})
	if got != strings.Repeat("INFO from a goroutine\n", 8) {
		t.Errorf("%q", got)
	}
}

// Serve on the program's own streams: what is printed is not in the answer.
func TestServeKeepsStandardOutput(t *testing.T) {
	in, inW, errIn := os.Pipe()
	outR, out, errOut := os.Pipe()
	if err := errors.Join(errIn, errOut); err != nil {
		t.Fatal(err)
	}
	oldIn, oldOut := os.Stdin, os.Stdout
	os.Stdin, os.Stdout = in, out
	_, err := inW.WriteString(`{"input": {"name": "x"}, "skill_id": "s"}`)
	code := -1
	if err = errors.Join(err, inW.Close()); err == nil {
		Rehearse(func(*Call, map[string]any) (nothing, error) {
			_, _ = fmt.Fprint(os.Stdout, "rehearsed")
			panic("nobody hears it")
		}, nil)
		code = Serve(func(call *Call, in map[string]any) (map[string]any, error) {
			_, _ = fmt.Fprintln(os.Stdout, "printed by a test, to standard error")
			in["id"] = call.SkillID
			return in, nil
		})
	}
	same := os.Stdout == out
	os.Stdin, os.Stdout = oldIn, oldOut
	err = errors.Join(err, out.Close())
	got, errRead := io.ReadAll(outR)
	if err := errors.Join(err, errRead); err != nil || code != 0 || !same || string(got) != `{"success":true,"data":{"id":"s","name":"x"},"error":null}`+"\n" {
		t.Errorf("%v, exit code %d, put back: %v, %s", err, code, same, got)
	}
}

func TestRehearse(t *testing.T) {
	t.Parallel()
	type input struct {
		Name string `json:"name"`
	}
	var got []string
	Rehearse(func(call *Call, in input) (nothing, error) {
		_, errData := call.ReadData("data/a")
		got = append(got, in.Name, errData.Error(), call.WriteArtifact("a", nil).Error())
		return nothing{}, nil
	}, input{"sample"})
	Rehearse(func(*Call, float64) (nothing, error) { got = append(got, "ran"); return nothing{}, nil }, math.NaN())
	want := []string{"sample", "this skill was given no ./data folder to read", "this skill was given no scratch space to write to"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q", got)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	outside := filepath.Join(root, "secret")
	err := errors.Join(os.MkdirAll(filepath.Join(root, "granted", "docs"), 0o700), os.Mkdir(filepath.Join(root, "work"), 0o700),
		os.WriteFile(outside, []byte("secret"), 0o600), os.WriteFile(filepath.Join(root, "granted", "a"), []byte("a\x00b"), 0o600))
	if err == nil && runtime.GOOS != "windows" {
		err = errors.Join(os.Symlink(filepath.Join(root, "granted"), filepath.Join(root, "data")), os.Symlink(outside, filepath.Join(root, "granted", "link")),
			os.Symlink("..", filepath.Join(root, "granted", "docs", "up")), os.Symlink("nowhere", filepath.Join(root, "granted", "dangling")))
	}
	if err != nil {
		t.Skip(err)
	}
	_, _, _ = serve(t, root, func(call *Call, _ nothing) (nothing, error) {
		if b, err := call.ReadData("./data/./a"); err != nil || string(b) != "a\x00b" {
			t.Errorf("%q, %v", b, err)
		}
		for path, want := range map[string]string{
			"data/link": "FORBIDDEN_PATH link", "data/docs/up/a": "FORBIDDEN_PATH link", "data/dangling": "FORBIDDEN_PATH link", "data/docs": "INVALID_ARGUMENT no_file",
			"data/a/b": "NOT_FOUND not_found", "data/" + strings.Repeat("x", 300): "NOT_FOUND not_found", "data/" + strings.Repeat("x", 1100): "FORBIDDEN_PATH outside_data",
			"data/\xff": "FORBIDDEN_PATH outside_data", "work/a": "FORBIDDEN_PATH outside_data", "secret": "FORBIDDEN_PATH outside_data",
		} {
			var e *Error
			if _, err := call.ReadData(path); !errors.As(err, &e) || fmt.Sprint(e.Code, " ", e.Details["reason"]) != want || len([]rune(fmt.Sprint(e.Details["path"]))) > 200 {
				t.Errorf("%.40q: %v, %v; want %s", path, err, e, want)
			}
		}
		for name, want := range map[string]string{
			"": "name", ".": "name", "..": "name", "a..b": "name", "/a": "name", `a\b`: "name", "a\x00": "name", "\xff": "name", strings.Repeat("é", 101): "name",
			"folder": "unwritable", strings.Repeat("é", 100): "<nil>", ".hidden": "<nil>",
		} {
			if name == "folder" {
				if err := os.Mkdir(filepath.Join(root, "work", name), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			var e *Error
			err := call.WriteArtifact(name, []byte("x"))
			got := "<nil>"
			if errors.As(err, &e) {
				got = fmt.Sprint(e.Details["reason"])
			}
			if got != want {
				t.Errorf("%.40q: %v, want %s", name, err, want)
			}
		}
		if err := errors.Join(call.WriteArtifact("twice", []byte("longer")), call.WriteArtifact("twice", []byte("2"))); err != nil {
			t.Error(err)
		}
		return nothing{}, nil
	})
	if b, err := os.ReadFile(filepath.Join(root, "work", "twice")); err != nil || string(b) != "2" {
		t.Errorf("%q, %v", b, err)
	}
}
