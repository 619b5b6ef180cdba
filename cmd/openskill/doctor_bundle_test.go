package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/host/config"
)

// TestBundleHasNoSecrets plants a value in every secret setting, in a log and in what
// callers send, and looks for them in the bundle.
func TestBundleHasNoSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const planted = `planted-"0123456789"-0123456789-0123456789`
	a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}
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
		}
		a.environ = append(a.environ, row.Env+"="+value)
	}
	if secrets < 7 {
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
	if err := os.WriteFile(log, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
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

func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return parts
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		parts[h.Name] = string(text)
	}
}
