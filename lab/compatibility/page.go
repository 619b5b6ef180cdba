package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"openskill/host/pysource/preflight"
)

const head = `# Compatibility with public skills

` + "`make compatibility`" + ` writes this page. It reads each collection by ` + "`openskill skills check FOLDER --summary`" + `, which runs nothing.
A script is covered when no finding says that it cannot run; a skill, when all its scripts are. Requests and variables that an operator can
grant, and packages without native code, count as had. What is computed at run time is not seen, so a covered script can still fail.
Which packages of PyPI have native code is known for some 140 that are used most. Others count as free of it where a skill or its collection
declares them. Packages of npm count as free of it unless one of 57 names,
listed by hand, has it: a package says so only once it is downloaded, when ` + "`openskill packages add`" + ` refuses it.

"As natively" counts recorded runs of scripts that gave the same output, files and exit code as on a Linux machine
([decision 65](decisions/0065-compare-public-scripts-with-recorded-native-runs.md)).

| collection | digest | skills with scripts | covered | scripts | covered | as natively |
|---|---|---|---|---|---|---|
`

// write makes the page.
func write(all []collection, runs map[string]*run) string {
	var b strings.Builder
	b.WriteString(head)
	for _, c := range all {
		name := c.Name
		if c.Date != "" {
			name += " of " + c.Date
		}
		s := c.Summary
		fmt.Fprintf(&b, "| %s | `%s` | %d | %s | %d | %s | %s |\n", name, c.Digest[:12], s.WithScripts, covered(s.CoveredSkills, s.WithScripts), s.Scripts, covered(s.CoveredScripts, s.Scripts), c.Natively)
	}
	b.WriteString("\nThe digest of a package is that of its archive; that of a collection with a date, of\n`find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum`.\n")
	b.WriteString(natively(runs))
	for _, c := range all {
		if len(c.Summary.Reasons) > 0 {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n%s", c.Name, languages(c.Summary), why(c.Summary))
		}
	}
	return b.String()
}

// natively are the recorded runs by category, and those that differ.
func natively(runs map[string]*run) string {
	total := map[string]*run{}
	var differs strings.Builder
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		r := runs[name]
		for category, n := range r.Categories {
			if total[category] == nil {
				total[category] = &run{}
			}
			t := total[category]
			t.Scripts, t.Cases, t.Natively = t.Scripts+n.Scripts, t.Cases+n.Cases, t.Natively+n.Natively
		}
		for _, one := range slices.Sorted(maps.Keys(r.Differs)) {
			fmt.Fprintf(&differs, "| %s | `%s` | %s |\n", r.Package, one, r.Differs[one])
		}
	}
	var b strings.Builder
	b.WriteString("\n## What runs as natively\n\n| category | scripts | runs | as natively |\n|---|---|---|---|\n")
	for _, category := range slices.Sorted(maps.Keys(total)) {
		t := total[category]
		fmt.Fprintf(&b, "| %s | %d | %d | %s |\n", category, t.Scripts, t.Cases, covered(t.Natively, t.Cases))
	}
	if differs.Len() > 0 {
		b.WriteString("\n| package | run | why it differs |\n|---|---|---|\n" + differs.String())
	}
	return b.String()
}

func covered(part, whole int) string {
	if whole == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%.1f %%)", part, 100*float64(part)/float64(whole))
}

func languages(s *preflight.Summary) string {
	var b strings.Builder
	b.WriteString("| scripts in | | covered |\n|---|---|---|\n")
	for _, l := range s.Languages {
		fmt.Fprintf(&b, "| %s | %d | %s |\n", l.Language, l.Scripts, covered(l.CoveredScripts, l.Scripts))
	}
	return b.String()
}

// why are the commonest reasons that the rest does not run.
func why(s *preflight.Summary) string {
	var b strings.Builder
	b.WriteString("| skills | kind | why the rest does not run |\n|---|---|---|\n")
	for _, r := range s.Reasons[:min(reasons, len(s.Reasons))] {
		fmt.Fprintf(&b, "| %d | %s | %s |\n", r.Skills, r.Kind, strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(r.What))
	}
	return b.String()
}
