package community

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"openskill/internal/musttest"
)

// collection is a published package whose scripts are run, testdata/NAME.yaml. How they ran
// natively is in testdata/NAME.json.
type collection struct {
	Name    string `yaml:"-"`
	Package string `yaml:"package"` // name and version; scripts/public-skills.sh has its hash
	// Inputs are there for the anchors of YAML: what several cases use.
	Inputs any     `yaml:"inputs"`
	Cases  []*kase `yaml:"cases"`

	native map[string]*recorded // by the names of cases
}

// kase is one run of a script.
type kase struct {
	Name     string            `yaml:"name"`   // "": the script; two cases of one script need names
	Folder   string            `yaml:"folder"` // of the collection, that the script sees as its skill; "": all of it
	Script   string            `yaml:"script"` // in the folder
	Category string            `yaml:"category"`
	Args     []string          `yaml:"args"`
	Stdin    string            `yaml:"stdin"`
	Files    map[string]string `yaml:"files"` // that are in the folder before
	Env      map[string]string `yaml:"env"`
	HTTP     []answer          `yaml:"http"`
	Packages []string          `yaml:"packages"` // as openskill packages add takes them
	// Ignore is what the comparison leaves out: time (dates, times and durations are {time}),
	// order (lines are sorted), stderr, file:GLOB, or re:EXPRESSION, whose matches are {…}.
	Ignore []string `yaml:"ignore"`
	// Differs says why the run is not as natively; "": it is.
	Differs string `yaml:"differs"`

	of *collection
}

// answer is what a server says to a request.
type answer struct {
	Method string            `yaml:"method" json:"method"` // "": GET
	URL    string            `yaml:"url" json:"url"`
	Status int               `yaml:"status" json:"status"` // 0: 200
	Header map[string]string `yaml:"header" json:"header"`
	Body   string            `yaml:"body" json:"body"`
}

// recorded is how a case ran natively, after what it ignores was taken out.
type recorded struct {
	Script string            `json:"script"` // SHA-256 of its file
	Exit   int               `json:"exit"`
	Stdout sum               `json:"stdout"`
	Stderr sum               `json:"stderr"`
	Files  map[string]string `json:"files,omitempty"` // made or changed: SHA-256
}

// sum is a text by its digest: nothing of a collection is in this repository.
type sum struct {
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
}

// outcome is a run as it was.
type outcome struct {
	exit           int
	failed         string // why there is no exit code
	stdout, stderr []byte
	files          map[string][]byte
}

var categories = []string{"shell", "node", "network", "processes", "packages", "python"}

// load reads all collections.
func load(t *testing.T) []*collection {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	if err != nil || len(names) == 0 {
		t.Fatal("no collections", err)
	}
	var all []*collection
	for _, name := range names {
		c := &collection{Name: strings.TrimSuffix(filepath.Base(name), ".yaml")}
		text, err := os.ReadFile(name)
		musttest.Do(t, err)
		d := yaml.NewDecoder(bytes.NewReader(text))
		d.KnownFields(true)
		if err := d.Decode(c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		seen := map[string]bool{}
		for _, k := range c.Cases {
			k.of = c
			if k.Name == "" {
				k.Name = k.Script
			} else {
				k.Name = k.Script + ": " + k.Name
			}
			if seen[k.Name] || !slices.Contains(categories, k.Category) || !filepath.IsLocal(k.Script) {
				t.Fatalf("%s: case %s is there twice, or its category or script is none", name, k.Name)
			}
			seen[k.Name] = true
		}
		text, err = os.ReadFile(c.record())
		if err == nil {
			err = json.Unmarshal(text, &c.native)
		}
		if err != nil && !*update {
			t.Fatal(err)
		}
		if c.native == nil {
			c.native = map[string]*recorded{}
		}
		all = append(all, c)
	}
	return all
}

func (c *collection) record() string { return filepath.Join("testdata", c.Name+".json") }

func (k *kase) ignores(what string) bool { return slices.Contains(k.Ignore, what) }

// times are dates, times of day, durations, and seconds and milliseconds since 1970.
var times = regexp.MustCompile(`\d{4}-\d\d-\d\d([T _]\d\d[:-]\d\d([:-]\d\d([.,-]\d+)?)?(Z|[+-]\d\d:?\d\d)?)?|\b\d{8}[-_T]?\d{4,6}Z?\b|\b\d\d?:\d\d(:\d\d([.,]\d+)?)?\b|\b1[789]\d{8}(\.?\d{3,9})?\b|\b\d+(\.\d+)? ?(s|ms|µs|us|ns|seconds?)\b`)

// plain takes out of a text what the case ignores.
func (k *kase) plain(text []byte) []byte {
	for _, word := range k.Ignore {
		if expr, ok := strings.CutPrefix(word, "re:"); ok {
			text = regexp.MustCompile(expr).ReplaceAll(text, []byte("{…}"))
		}
	}
	if k.ignores("time") {
		text = times.ReplaceAll(text, []byte("{time}"))
	}
	if k.ignores("order") {
		lines := bytes.Split(text, []byte("\n"))
		slices.SortFunc(lines, bytes.Compare)
		text = bytes.Join(lines, []byte("\n"))
	}
	return text
}

// recorded is an outcome without what the case ignores.
func (k *kase) recorded(o *outcome) *recorded {
	r := &recorded{Exit: o.exit, Stdout: sumOf(k.plain(o.stdout)), Files: map[string]string{}}
	if !k.ignores("stderr") {
		r.Stderr = sumOf(k.plain(o.stderr))
	}
	for name, data := range o.files {
		if !k.ignoresFile(name) {
			r.Files[string(k.plain([]byte(name)))] = sumOf(k.plain(data)).SHA256
		}
	}
	return r
}

func (k *kase) ignoresFile(name string) bool {
	return slices.ContainsFunc(k.Ignore, func(word string) bool {
		glob, ok := strings.CutPrefix(word, "file:")
		match, err := filepath.Match(glob, name)
		return ok && err == nil && match
	})
}

func sumOf(b []byte) sum {
	if len(b) == 0 {
		return sum{}
	}
	s := sha256.Sum256(b)
	return sum{len(b), hex.EncodeToString(s[:])}
}

// differences are those of a run and how it ran natively, a line each.
func differences(native, sandbox *recorded) (all []string) {
	differ := func(what string, a, b any) {
		all = append(all, fmt.Sprintf("%s: natively %v, in the sandbox %v", what, a, b))
	}
	if native.Exit != sandbox.Exit {
		differ("exit code", native.Exit, sandbox.Exit)
	}
	if native.Stdout != sandbox.Stdout {
		differ("standard output", native.Stdout, sandbox.Stdout)
	}
	if native.Stderr != sandbox.Stderr {
		differ("standard error", native.Stderr, sandbox.Stderr)
	}
	for name, a := range native.Files {
		if b := sandbox.Files[name]; a != b {
			differ(name, a, b)
		}
	}
	for name, b := range sandbox.Files {
		if _, ok := native.Files[name]; !ok {
			differ(name, "not made", b)
		}
	}
	return all
}
