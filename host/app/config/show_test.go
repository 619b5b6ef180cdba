package config

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
)

var update = flag.Bool("update", false, "write deploy/openskill.yaml anew")

// TestSampleIsUpToDate holds the file that packages install to the table of settings.
func TestSampleIsUpToDate(t *testing.T) {
	path := filepath.Join("..", "..", "..", "deploy", "openskill.yaml")
	if *update {
		musttest.Do(t, os.WriteFile(path, Sample(), 0o644))
	}
	have := musttest.Get(os.ReadFile(path))(t)
	if diff := cmp.Diff(string(Sample()), string(have)); diff != "" {
		t.Errorf("the sample is another one now; run go test ./host/app/config -update\n%s", diff)
	}
}

// TestSampleLoads loads the sample as it is, with each key uncommented by itself, and
// with all of them.
func TestSampleLoads(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"skills", "skills_cli", "data"} {
		musttest.Do(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	load := func(t *testing.T, text string) *Settings {
		t.Helper()
		musttest.Write(t, filepath.Join(dir, "openskill.yaml"), text)
		return musttest.Get(Load(Sources{Dir: dir}))(t)
	}
	sample := string(Sample())
	want := load(t, sample).Show()
	all := sample
	for _, row := range Table() {
		line := "\n#" + row.Key + ":"
		if n := strings.Count(sample, line); n != 1 {
			t.Fatalf("the sample has %s %d times", row.Key, n)
		}
		all = strings.Replace(all, line, "\n"+row.Key+":", 1)
		s := load(t, strings.Replace(sample, line, "\n"+row.Key+":", 1))
		if from := s.Origin(row.Env); row.Default != "" && from != FromFile {
			t.Errorf("%s comes from %s", row.Key, from)
		}
	}
	got := load(t, all).Show()
	for i := range got {
		if got[i].Value != want[i].Value {
			t.Errorf("%s: the sample says %q, the default is %q", got[i].Env, got[i].Value, want[i].Value)
		}
	}
}

// TestShowHidesSecrets sets every secret, and looks for it in what is shown.
func TestShowHidesSecrets(t *testing.T) {
	const planted = "planted-0123456789-0123456789-0123456789"
	var environ, secrets []string
	for _, row := range Table() {
		if !row.Secret {
			continue
		}
		secrets = append(secrets, row.Env)
		value := planted
		switch row.Env {
		case "OPENSKILL_DATABASE_URL":
			value = "postgres://user:" + planted + "@localhost/db"
		case "OPENSKILL_ENV_ALLOW":
			value = "NAME=" + planted
		case "OPENSKILL_PROVIDERS":
			value = "openai.key:" + planted + ",llm-service.key:" + planted
		}
		environ = append(environ, row.Env+"="+value)
	}
	environ = append(environ, "OPENSKILL_JWT_ISSUER=i", "OPENSKILL_JWT_AUDIENCE=a", "OPENSKILL_JWT_JWKS=https://u:"+planted+"@keys.example.com/jwks?token="+planted)
	s := musttest.Get(Load(Sources{Dir: t.TempDir(), Environ: environ}))(t)
	var text bytes.Buffer
	set := 0
	for _, row := range s.Show() {
		text.WriteString(row.Env + " " + row.Value + " " + row.Where + "\n")
		if row.Value == "set" || strings.HasPrefix(row.Value, "openai.key:set,") {
			set++
		}
		if row.Env == "OPENSKILL_JWT_JWKS" && !strings.HasPrefix(row.Value, "https://keys.example.com/jwks ") {
			t.Errorf("the key set is shown as %q", row.Value)
		}
	}
	if strings.Contains(text.String(), planted) {
		t.Errorf("a secret is shown:\n%s", text.String())
	}
	if len(secrets) < 5 || set != len(secrets) {
		t.Errorf("%d of %d secrets are said to be set: %v", set, len(secrets), secrets)
	}
}

// TestEveryWrongSettingIsNamed has problems of all kinds at once.
func TestEveryWrongSettingIsNamed(t *testing.T) {
	dir := t.TempDir()
	musttest.Write(t, filepath.Join(dir, "openskill.yaml"), "fuel: much\nnothing_like_that: 1\nmemory_mb: 4096\n")
	_, err := Load(Sources{Dir: dir, Environ: []string{"OPENSKILL_TIMEOUT_MS=0", "OPENSKILL_AUTH=perhaps", "OPENSKILL_RATE=tenant:x"}})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, name := range []string{"OPENSKILL_FUEL", "nothing_like_that", "OPENSKILL_MEMORY_MB", "OPENSKILL_TIMEOUT_MS", "OPENSKILL_AUTH", "OPENSKILL_RATE tenant"} {
		found := 0
		for line := range strings.Lines(err.Error()) {
			if strings.Contains(line, name+" (from") || strings.Contains(line, `"`+name+`" is not known`) {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%s is named %d times in:\n%v", name, found, err)
		}
	}
}
