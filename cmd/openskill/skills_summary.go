package main

import (
	"fmt"

	"openskill/host/pysource/preflight"
)

// most bounds the lists of a summary.
const most = 30

// summarize prints what skills check --summary says of a collection.
func (a *cli) summarize(all *preflights, asJSON bool) error {
	reports := make([]*preflight.Report, 0, len(all.Folders))
	for _, f := range all.Folders {
		reports = append(reports, f.Report)
	}
	s := preflight.Summarize(reports, most)
	if asJSON {
		return a.printJSON(s)
	}
	t := newTable("", "SKILLS", "COVERED", "", "SCRIPTS", "COVERED", "")
	row := func(name string, c preflight.Coverage) {
		t.row(name, fmt.Sprint(c.WithScripts), fmt.Sprint(c.CoveredSkills), percent(c.CoveredSkills, c.WithScripts), fmt.Sprint(c.Scripts), fmt.Sprint(c.CoveredScripts), percent(c.CoveredScripts, c.Scripts))
	}
	row("all", s.Coverage)
	for _, l := range s.Languages {
		row(l.Language, l.Coverage)
	}
	if err := a.print("%d skills, %d with scripts\n\n%s\n\nCovered: all that the scripts need is there, with granted requests and variables and with\npackages without native code.\n", s.Skills, s.WithScripts, t.String()); err != nil {
		return err
	}
	if len(s.Reasons) > 0 {
		t = newTable("SKILLS", "ALONE", "KIND", "WHY OTHERS ARE NOT COVERED")
		for _, r := range s.Reasons {
			t.row(fmt.Sprint(r.Skills), fmt.Sprint(r.Alone), string(r.Kind), r.What)
		}
		if err := a.print("\n%s\n", t.String()); err != nil {
			return err
		}
	}
	if len(s.Proposals) == 0 {
		return nil
	}
	t = newTable("SKILLS", "KIND", "WHAT THEY ASK FOR")
	for _, p := range s.Proposals {
		t.row(fmt.Sprint(p.Skills), p.Kind, p.Name)
	}
	return a.print("\n%s\n", t.String())
}

// percent is a part of a whole in percent; "" of nothing.
func percent(part, whole int) string {
	if whole == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}
