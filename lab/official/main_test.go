package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
)

func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil { // where the command is run
		panic(err)
	}
	os.Exit(m.Run())
}

// TestPage: the page has the table of the cases.
func TestPage(t *testing.T) {
	all := musttest.Get(cases())(t)
	text := string(musttest.Get(os.ReadFile(page))(t))
	if changed := musttest.Get(replaced(text, table(all)))(t); len(all) != 17 || changed != text {
		t.Errorf("%d cases; %s is not up to date: run the command that it names", len(all), page)
	}
}

// TestCases runs the cases of the skills that make public-skills has fetched.
func TestCases(t *testing.T) {
	if testing.Short() {
		t.Skip("short: starting a language takes seconds")
	}
	state := os.Getenv("OPENSKILL_STATE_DIR")
	if state == "" {
		state = filepath.Join("..", ".openskill")
	}
	folder := musttest.Get(filepath.Abs(filepath.Join(state, "public-skills", "dex")))(t)
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("this collection is not here (make public-skills): %v", err)
	}
	ran := 0
	for _, c := range musttest.Get(cases())(t) {
		if _, err := os.Stat(filepath.Join(folder, "anthropic."+c.skill)); err != nil {
			continue // in no package
		}
		t.Run(c.skill, func(t *testing.T) {
			ran++
			out, err := c.run(t.Context(), folder)
			if err != nil && (strings.Contains(out, "openskill runtime install") || strings.Contains(out, "make runtimes")) {
				t.Skip(out)
			}
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	if ran < 10 {
		t.Errorf("only %d skills are in %s", ran, folder)
	}
}
