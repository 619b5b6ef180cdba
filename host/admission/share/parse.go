package share

import (
	"fmt"
	"slices"
	"strings"

	"openskill/internal/safeyaml"
	"openskill/sdk/skill"
)

// What a policy's file may hold.
const (
	MaxFile       = safeyaml.MaxBytes
	maxPublishers = 200
	maxList       = 100 // keys, skills or registries of one publisher
	maxText       = 300 // bytes of one of them
)

// PolicyProblem is what is wrong with a policy, and its line; 0 is the whole file.
type PolicyProblem struct {
	Line    int
	Message string
}

// String gives the problem with its line.
func (p PolicyProblem) String() string { return fmt.Sprintf("%d: %s", p.Line, p.Message) }

// ParsePolicy reads a policy. With problems there is none: half a policy would accept what
// the whole one does not.
func ParsePolicy(src []byte) (*Policy, []PolicyProblem) {
	root, bad := safeyaml.Read(src)
	r := &reader{}
	for _, p := range bad {
		r.problems = append(r.problems, PolicyProblem(p))
	}
	p := &Policy{}
	if len(bad) == 0 {
		r.fields(root, "a trust policy", map[string]func(safeyaml.Value){
			"publishers": func(v safeyaml.Value) { r.publishers(v, p) },
			"unsigned": func(v safeyaml.Value) {
				p.Unsigned = r.word(v, "unsigned", "refuse", "community") == "community"
			},
		})
	}
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	return p, nil
}

type reader struct{ problems []PolicyProblem }

func (r *reader) report(line int, format string, args ...any) {
	r.problems = append(r.problems, PolicyProblem{line, fmt.Sprintf(format, args...)})
}

// fields goes through a map whose keys are known.
func (r *reader) fields(v safeyaml.Value, what string, known map[string]func(safeyaml.Value)) {
	if v.Kind != safeyaml.Map {
		r.report(v.Line, "%s must be a map of keys and values", what)
		return
	}
	for i, key := range v.Keys {
		if read, ok := known[key.Name]; ok {
			read(v.Items[i])
			continue
		}
		names := make([]string, 0, len(known))
		for name := range known {
			names = append(names, name)
		}
		slices.Sort(names)
		r.report(key.Line, "unknown key %s in %s; accepted are %s", safeyaml.Quote(key.Name), what, strings.Join(names, ", "))
	}
}

// word reads one of the words.
func (r *reader) word(v safeyaml.Value, what string, words ...string) string {
	if v.Kind == safeyaml.Text && slices.Contains(words, v.Text) {
		return v.Text
	}
	r.report(v.Line, "%s must be %s", what, strings.Join(words, " or "))
	return ""
}

func (r *reader) publishers(v safeyaml.Value, p *Policy) {
	if v.Kind != safeyaml.List || len(v.Items) > maxPublishers {
		r.report(v.Line, "publishers must be a list of at most %d", maxPublishers)
		return
	}
	seen := map[string]bool{}
	for _, item := range v.Items {
		of := r.publisher(item)
		if of.Name != "" && seen[of.Name] {
			r.report(item.Line, "duplicate publisher %s", safeyaml.Quote(of.Name))
		}
		seen[of.Name] = true
		p.Publishers = append(p.Publishers, of)
	}
}

func (r *reader) publisher(v safeyaml.Value) Publisher {
	of := Publisher{}
	r.fields(v, "a publisher", map[string]func(safeyaml.Value){
		"name": func(v safeyaml.Value) {
			of.Name = v.Text
			if v.Kind != safeyaml.Text || v.Text == "" || len(v.Text) > 100 || skill.CleanText(v.Text, 100) != v.Text {
				r.report(v.Line, "name must be one line of at most 100 bytes")
			}
		},
		"keys": func(v safeyaml.Value) {
			for _, item := range r.list(v, "keys") {
				key, err := ParsePublic(item.Text)
				if err != nil {
					r.report(item.Line, "%s is not a minisign public key, which begins with RW", safeyaml.Quote(item.Text))
					continue
				}
				of.Keys = append(of.Keys, key)
			}
		},
		"skills": func(v safeyaml.Value) {
			of.Skills = r.patterns(v, "skills", "abcdefghijklmnopqrstuvwxyz0123456789_-*")
		},
		"registries": func(v safeyaml.Value) {
			of.Registries = r.patterns(v, "registries", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-*./:[]")
			if of.Registries == nil {
				of.Registries = []string{} // an empty list is nowhere, not anywhere
			}
		},
		"trust": func(v safeyaml.Value) {
			if r.word(v, "trust", "community", "trusted") == "trusted" {
				of.Trust = skill.Trusted
			}
		},
	})
	if v.Kind != safeyaml.Map {
		return of
	}
	given := map[string]bool{}
	for _, key := range v.Keys {
		given[key.Name] = true
	}
	for _, key := range []string{"name", "keys", "skills"} {
		if !given[key] {
			r.report(v.Line, "a publisher has no key %s", key)
		}
	}
	return of
}

// list reads a list of texts, of which there is one at least.
func (r *reader) list(v safeyaml.Value, what string) []safeyaml.Value {
	if v.Kind != safeyaml.List || len(v.Items) == 0 || len(v.Items) > maxList {
		r.report(v.Line, "%s must be a list of 1 to %d texts", what, maxList)
		return nil
	}
	for _, item := range v.Items {
		if item.Kind != safeyaml.Text || item.Text == "" || len(item.Text) > maxText {
			r.report(item.Line, "%s must hold texts of 1 to %d bytes", what, maxText)
			return nil
		}
	}
	return v.Items
}

// patterns reads texts of these characters.
func (r *reader) patterns(v safeyaml.Value, what, of string) []string {
	var out []string
	for _, item := range r.list(v, what) {
		if strings.Trim(item.Text, of) != "" {
			r.report(item.Line, "%s has the invalid pattern %s: use letters of names and * for any text", what, safeyaml.Quote(item.Text))
			continue
		}
		out = append(out, item.Text)
	}
	return out
}
