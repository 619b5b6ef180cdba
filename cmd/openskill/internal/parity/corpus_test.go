package parity_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/cmd/openskill/internal/parity"
	"openskill/internal/musttest"
)

// corpus is a folder of skills from public repositories, with cases and how these
// ended natively. What one such folder gave is in testdata/corpus.md.
type corpus struct {
	Python  string        `json:"python"` // that the cases were recorded with
	Entries []corpusEntry `json:"entries"`
}

type corpusEntry struct {
	Repo    string       `json:"repo"`
	Commit  string       `json:"commit"`
	Licence string       `json:"licence"`
	Skill   string       `json:"skill"`  // its path in the repository
	Folder  string       `json:"folder"` // its copy in the corpus
	Script  string       `json:"script"` // in the folder
	SHA256  string       `json:"sha256"`
	Cases   []corpusCase `json:"cases"`
}

type corpusCase struct {
	Kind   string            `json:"kind"` // output, files, error (an exit code and output), help, usage
	Args   []string          `json:"args"`
	Files  map[string]string `json:"files"`
	Stdin  string            `json:"stdin"`
	Ignore []string          `json:"ignore"`
	Native recorded          `json:"native"`
}

// recorded is a native run of before: scripts of strangers are run natively once, by
// somebody with no rights, and not by a test.
type recorded struct {
	Exit   int               `json:"exit"`
	Stdout string            `json:"stdout"` // in hex
	Stderr string            `json:"stderr"`
	Files  map[string]string `json:"files"`
	Folder string            `json:"folder"`
}

func (r recorded) Run(context.Context, string, *parity.Case) (*parity.Outcome, error) {
	out, err := hex.DecodeString(r.Stdout)
	if err != nil {
		return nil, err
	}
	return &parity.Outcome{Exit: r.Exit, Stdout: out, Stderr: []byte(r.Stderr), Files: r.Files, Folders: []string{r.Folder}}, nil
}

// corpusResult is what corpus-results.json has of one case.
type corpusResult struct {
	Repo   string           `json:"repo"`
	Skill  string           `json:"skill"`
	Folder string           `json:"folder"`
	Script string           `json:"script"`
	Case   corpusCase       `json:"case"`
	Result *parity.Compared `json:"result"`
}

// TestCorpus runs the scripts of public skills in the sandbox and compares with how
// they ended natively. A script is the same if all its cases are.
func TestCorpus(t *testing.T) {
	dir := os.Getenv("OPENSKILL_TEST_CORPUS")
	if dir == "" {
		t.Skip("OPENSKILL_TEST_CORPUS names no folder of public skills")
	}
	b := musttest.Get(os.ReadFile(filepath.Join(dir, cmp.Or(os.Getenv("OPENSKILL_TEST_CORPUS_MANIFEST"), "manifest.json"))))(t)
	var c corpus
	musttest.Do(t, json.Unmarshal(b, &c))
	s := sandbox(t)
	began := time.Now()
	results := make([][]corpusResult, len(c.Entries))
	work := make(chan int)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for i := range work {
				results[i] = c.Entries[i].run(t, dir, s)
				if i%50 == 49 {
					t.Logf("%d of %d scripts", i+1, len(c.Entries))
				}
			}
		})
	}
	for i := range c.Entries {
		work <- i
	}
	close(work)
	wg.Wait()
	table(t, dir, &c, results)
	t.Logf("%v", time.Since(began).Round(time.Second))
}

func (e *corpusEntry) run(t *testing.T, dir string, s *parity.Sandbox) (all []corpusResult) {
	t.Helper()
	folder := filepath.Join(dir, filepath.FromSlash(e.Folder))
	text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(e.Script)))
	if sum := sha256.Sum256(text); err != nil || hex.EncodeToString(sum[:]) != e.SHA256 {
		t.Errorf("%s %s is not the one of the manifest: %v", e.Folder, e.Script, err)
		return nil
	}
	for _, c := range e.Cases {
		r, err := parity.Run(t.Context(), folder, []parity.Case{{
			Script: e.Script, Args: c.Args, Stdin: c.Stdin, Files: c.Files, Ignore: c.Ignore, TimeoutMS: 30_000,
		}}, c.Native, s)
		if err != nil {
			t.Errorf("%s %s %q: %v", e.Folder, e.Script, c.Args, err)
			continue
		}
		all = append(all, corpusResult{e.Repo, e.Skill, e.Folder, e.Script, c, &r.Cases[0]})
	}
	return all
}

// table prints what is the same and what differs, by the kind of case and by script.
func table(t *testing.T, dir string, c *corpus, results [][]corpusResult) {
	t.Helper()
	kinds, same := map[string]int{}, map[string]int{}
	scripts, good, none := 0, 0, 0
	var out strings.Builder
	var flat []corpusResult
	for i, list := range results {
		if len(list) == 0 {
			none++
			continue
		}
		flat = append(flat, list...)
		scripts++
		all := true
		for _, r := range list {
			kinds[r.Case.Kind]++
			if r.Result.Verdict == parity.Same {
				same[r.Case.Kind]++
				continue
			}
			all = false
			fmt.Fprintf(&out, "%s %s %q: %s\n", c.Entries[i].Repo, r.Script, r.Case.Args, r.Result.Differences[0].What)
		}
		if all {
			good++
		}
	}
	for _, k := range slices.Sorted(func(yield func(string) bool) {
		for k := range kinds {
			if !yield(k) {
				return
			}
		}
	}) {
		fmt.Fprintf(&out, "%-8s %4d of %4d cases are the same\n", k, same[k], kinds[k])
	}
	percent := 100 * float64(good) / float64(max(scripts, 1))
	fmt.Fprintf(&out, "scripts: %d of %d are the same in all their cases (%.1f %%); %d do not end natively\n", good, scripts, percent, none)
	t.Log("\n" + out.String())
	b := musttest.Get(json.MarshalIndent(flat, "", " "))(t)
	musttest.Do(t, os.WriteFile(filepath.Join(dir, "results.json"), b, 0o600))
	if percent < 95 {
		t.Errorf("%.1f %% are the same; the goal is 95 %%", percent)
	}
}
