package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/host/manifest"
)

// TestUnlimitedEcho holds the skill that is measured to what the one of the house
// is, but for its limit of calls a minute.
func TestUnlimitedEcho(t *testing.T) {
	settings, err := config.Load(config.Sources{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	echo := func(root string) *manifest.Skill {
		r, err := app.Catalogue(settings, app.Roots(settings, []string{root}))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Problems() {
			if filepath.Base(filepath.Dir(p.File)) == "echo" {
				t.Error(p)
			}
		}
		s, err := r.Get("echo", "")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	house := filepath.Join("..", "..", "skills")
	root, err := unlimitedEcho(filepath.Join(house, "echo"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(root); err != nil {
			t.Error(err)
		}
	})
	want, got := echo(house), echo(root)
	if want.Descriptor.Cost.RateLimitPerMinute == 0 || got.Descriptor.Cost.RateLimitPerMinute != 0 {
		t.Errorf("calls a minute: %d in the house, %d measured; want a limit and none",
			want.Descriptor.Cost.RateLimitPerMinute, got.Descriptor.Cost.RateLimitPerMinute)
	}
	if got.Primary != want.Primary || *got.Fallback != *want.Fallback || got.Limits != want.Limits ||
		got.Descriptor.Cost.EstimatedTokens != want.Descriptor.Cost.EstimatedTokens {
		t.Errorf("measured is %+v, want %+v", got, want)
	}

	// A limit may stand alone, in front, or on a line of its own.
	for _, c := range []struct{ in, want string }{
		{"{rate_limit_per_minute: 60}", "{}"},
		{"{rate_limit_per_minute: 60, estimated_tokens: 1}", "{ estimated_tokens: 1}"},
		{"  estimated_tokens: 1\n  rate_limit_per_minute: 6000\nis_enabled: true\n", "  estimated_tokens: 1\n  \nis_enabled: true\n"},
	} {
		if got := string(rateLimit.ReplaceAll([]byte(c.in), nil)); got != c.want {
			t.Errorf("%q without the limit is %q, want %q", c.in, got, c.want)
		}
	}

	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	if _, err := unlimitedEcho(filepath.Join(house, "none")); err == nil {
		t.Error("no such skill: want an error")
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
}

// TestEverySuiteIsInTheHelp looks for the suites in the sources, since benchmarks are
// made where they are measured.
func TestEverySuiteIsInTheHelp(t *testing.T) {
	long := (&cli{}).benchCommand().Long
	suite := regexp.MustCompile(`Suite: "([a-z0-9]+)"`)
	found := map[string]bool{}
	files, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range suite.FindAllSubmatch(b, -1) {
			found[string(m[1])] = true
		}
	}
	if len(found) < 10 {
		t.Errorf("only %d suites are in the sources: %v", len(found), found)
	}
	for name := range found {
		if !strings.Contains(long, " "+name+" (") && !strings.Contains(long, "\n"+name+" (") && !strings.Contains(long, "suite "+name) {
			t.Errorf("bench --help says nothing of the suite %s", name)
		}
	}
}
