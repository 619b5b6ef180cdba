package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"openskill/host/app/config"
	"openskill/internal/musttest"
)

// TestBundleHasNoSecrets plants a value in every secret setting, in a log and in what
// callers send, and looks for them in the bundle.
func TestBundleHasNoSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const planted = `planted-"0123456789"-0123456789-0123456789`
	a := &cli{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}
	secrets := 0
	for _, row := range config.Table() {
		if !row.Secret {
			continue
		}
		secrets++
		value := planted
		switch row.Env {
		case "OPENSKILL_DATABASE_URL":
			value = "postgres://user:planted-password@localhost/db"
		case "OPENSKILL_ENV_ALLOW":
			value = "NAME=planted-variable"
		case "OPENSKILL_PROVIDERS":
			value = "openai.key:planted-1,dashscope.key:planted-2,deepseek.key:planted-3,anthropic.key:planted-4,llm-service.key:planted-5"
		}
		a.environ = append(a.environ, row.Env+"="+value)
	}
	if secrets < 5 {
		t.Errorf("%d secrets", secrets)
	}
	state := filepath.Join(dir, "state")
	a.environ = append(a.environ, "OPENSKILL_STATE_DIR="+state, "OPENSKILL_JWT_ISSUER=i", "OPENSKILL_JWT_AUDIENCE=a",
		"OPENSKILL_JWT_JWKS=https://u:planted-in-address@keys.example.com/jwks?token=planted-in-query")
	log := filepath.Join(dir, "host.log")
	lines := `{"time":"t1","level":"INFO","msg":"invoke","skill_id":"echo","code":"TIMEOUT","message":"planted-by-caller","input":{"a":"planted-by-caller"}}
{"time":"t2","level":"DEBUG","msg":"stderr","text":"planted-by-skill","code":"planted-by-skill"}
{"time":"t3","level":"WARN","msg":"settings wait for a restart","names":["planted-password"]}
planted: no line of a log
`
	musttest.Do(t, os.WriteFile(log, []byte(lines), 0o600))
	file := filepath.Join(dir, "support.tar.gz")
	run := func() int {
		root := a.rootCommand()
		root.SetArgs([]string{"doctor", "--bundle", file, "--log", log, "--skills", skillFolder(t)})
		cmd, err := root.ExecuteContextC(t.Context())
		return a.report(cmd, err)
	}
	if code := run(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	parts := unpack(t, file)
	for name, text := range parts {
		if strings.Contains(text, "planted") {
			t.Errorf("%s has something that was planted:\n%s", name, text)
		}
	}
	for name, want := range map[string]string{
		"version.json": `"wazero"`, "doctor.json": `"engine"`, "settings.json": `"OPENSKILL_JWT_SECRET"`, "counts.json": `"folders"`,
		"log.jsonl": `"code":"TIMEOUT"`,
	} {
		if !strings.Contains(parts["openskill-support/"+name], want) {
			t.Errorf("%s has no %s: %q", name, want, parts["openskill-support/"+name])
		}
	}
	if len(parts) != 5 {
		t.Errorf("%d parts", len(parts))
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if code := run(); code != exitUsage {
		t.Errorf("a file that is there: exit code %d", code)
	}
}

// TestBundleKeepsFieldsOfTheLog holds the list of fields against a call that failed: all of
// its line is kept but what tells of its caller, and the list has no field that nobody writes.
func TestBundleKeepsFieldsOfTheLog(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	Run(t.Context(), []string{"run", skillFolder(t), "--state", t.TempDir(), "--fuel", "100000", "--debug"}, strings.NewReader(""), &stdout, &stderr)
	log := filepath.Join(t.TempDir(), "host.log")
	musttest.Do(t, os.WriteFile(log, stderr.Bytes(), 0o600))
	kept := musttest.Get(logTail(log))(t)
	of := func(lines []byte) map[string]any {
		t.Helper()
		for line := range bytes.Lines(lines) {
			var fields map[string]any
			if json.Unmarshal(line, &fields) == nil && fields["msg"] == "invoke" {
				return fields
			}
		}
		t.Fatalf("no line of a call in %q", lines)
		return nil
	}
	written, shown := of(stderr.Bytes()), of(kept)
	if shown["runner_type"] != "wasm:wasi" || shown["error.code"] != "FUEL_EXHAUSTED" {
		t.Errorf("of the call that failed there is %v", shown)
	}
	for _, name := range []string{"principal", "tenant", "error.message"} { // which tell of the caller
		if _, ok := written[name]; !ok || slices.Contains(logFields, name) {
			t.Errorf("%s: written %v, in the list %v", name, ok, slices.Contains(logFields, name))
		}
		delete(written, name)
	}
	for name := range written {
		if !slices.Contains(logFields, name) {
			t.Errorf("%s is in the line of a call, and not in the list", name)
		}
	}
	keys := keysWritten(t)
	for _, name := range logFields {
		if _, ok := written[name]; !ok && !keys[name] {
			t.Errorf("%s is in the list, and nobody writes it", name)
		}
	}
}

// keysWritten are the fields that the program gives lines of logs, by its source.
func keysWritten(t *testing.T) map[string]bool {
	t.Helper()
	key := regexp.MustCompile(`slog\.[A-Z][A-Za-z0-9]*\("([a-z_.]+)",`)
	keys := map[string]bool{}
	for _, root := range []string{".", "../../host", "../../plugins"} {
		err := filepath.WalkDir(root, func(name string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := os.ReadFile(name)
			for _, m := range key.FindAllSubmatch(text, -1) {
				keys[string(m[1])] = true
			}
			return err
		})
		musttest.Do(t, err)
	}
	return keys
}

func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	b := musttest.Get(os.ReadFile(file))(t)
	zip := musttest.Get(gzip.NewReader(bytes.NewReader(b)))(t)
	parts := map[string]string{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return parts
		}
		musttest.Do(t, err)
		text := musttest.Get(io.ReadAll(r))(t)
		parts[h.Name] = string(text)
	}
}
