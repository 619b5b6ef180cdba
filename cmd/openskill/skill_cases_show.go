package main

import (
	"encoding/xml"
	"fmt"
	"os"
	"strings"

	"openskill/sdk/skill"
)

// paint colours words for a person at a terminal; false leaves them as they are.
type paint bool

// colours reports whether standard output is a terminal that may have colours.
func (a *cli) colours() paint {
	return paint(onTerminal(a.stdout) && a.environment("NO_COLOR") == "")
}

func (p paint) in(style, text string) string {
	if !p || text == "" || style == plainStyle {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// tellCases prints a line for each case, and below one that failed what was expected
// above what came, with the place in the answer.
func (a *cli) tellCases(r *caseReport, file string) error {
	p := a.colours()
	for i := range r.Cases {
		if err := a.print("%s", p.outcome(&r.Cases[i], r)); err != nil {
			return err
		}
	}
	line := fmt.Sprintf("%d passed, %d failed: %s %s by %s", r.Passed, r.Failed, r.SkillID, r.Version, firstOf(string(r.Runner), "no runner"))
	if f := r.Fallback; f != nil && f.Missing == "" {
		line += fmt.Sprintf("; %d of %d differ by the fallback %s", f.Differ, f.Compared, f.Runner)
	}
	if err := a.print("%s\n", line); err != nil {
		return err
	}
	if r.Updated > 0 {
		if err := a.print("updated %d of %d: %s\n", r.Updated, len(r.Cases), skill.CleanText(file, 500)); err != nil {
			return err
		}
	}
	if f := r.Fallback; f != nil && f.Missing != "" {
		a.say("openskill: the fallback %s was not compared: %s", f.Runner, f.Missing)
	}
	return nil
}

// outcome is the lines of a case. What a skill says must not move the cursor.
func (p paint) outcome(o *caseOutcome, r *caseReport) string {
	var b strings.Builder
	switch {
	case !o.Passed:
		b.WriteString(p.in(badStyle, "FAIL"))
	case o.Updated:
		b.WriteString(p.in(askStyle, "new "))
	default:
		b.WriteString(p.in(goodStyle, "ok  "))
	}
	fmt.Fprintf(&b, "  %s  (%d ms)\n", o.Name, o.LatencyMS)
	first, second := "expected", "got"
	if o.Updated {
		first, second = "was", "is"
	}
	for _, d := range o.Differences {
		p.difference(&b, d.At, first, d.Want, second, d.Got)
	}
	if o.Stderr != "" {
		fmt.Fprintf(&b, "      %s\n", p.in(nameStyle, "standard error"))
		for _, line := range lastLines(o.Stderr) {
			fmt.Fprintf(&b, "        %s\n", cleaned(line))
		}
	}
	if o.Kept != "" {
		fmt.Fprintf(&b, "      not written: %s\n", cleaned(o.Kept))
	}
	if f := o.Fallback; f != nil && len(f.Differences) > 0 {
		b.WriteString("      the fallback answers otherwise\n")
		for _, d := range f.Differences {
			p.difference(&b, d.At, string(r.Runner), d.Primary, string(r.Fallback.Runner), d.Fallback)
		}
	}
	return b.String()
}

// lastLines is the end of a text, such as the part of a traceback that says why. Of long
// ones the first line is … .
func lastLines(text string) []string {
	const most = 12
	all := strings.Split(text, "\n")
	if over := len(all) - most; over > 0 {
		all = append([]string{"…"}, all[over+1:]...)
	}
	for i, line := range all {
		all[i] = strings.TrimRight(line, " \t\r")
	}
	return all
}

// difference is a place, and two values below each other that begin in one column.
func (p paint) difference(b *strings.Builder, at, first, one, second, two string) {
	if at != "" {
		fmt.Fprintf(b, "      %s\n", p.in(nameStyle, cleaned(at)))
	}
	wide := max(len(first), len(second))
	fmt.Fprintf(b, "        %-*s  %s\n        %-*s  %s\n", wide, first, p.in(goodStyle, cleaned(one)), wide, second, p.in(badStyle, cleaned(two)))
}

// The report that CI systems read; they agree on these elements.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Seconds string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure"`
		Stderr  string        `xml:"system-err,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

func junitFailed(c *caseOutcome, r *caseReport) *junitFailure {
	var f junitFailure
	n := len(c.Differences)
	if c.Updated { // what was expected before is right now
		n = 0
	}
	for _, d := range c.Differences[:n] {
		f.Text += fmt.Sprintf("%s: expected %s, got %s\n", firstOf(d.At, "answer"), d.Want, d.Got)
	}
	if c.Fallback != nil {
		n += len(c.Fallback.Differences)
		for _, d := range c.Fallback.Differences {
			f.Text += fmt.Sprintf("%s: %s answers %s, the fallback %s %s\n", firstOf(d.At, "answer"), r.Runner, d.Primary, r.Fallback.Runner, d.Fallback)
		}
	}
	f.Message = fmt.Sprintf("%d differences", n)
	return &f
}

func writeJUnit(name string, r *caseReport) error {
	s := junitSuite{Name: string(r.SkillID), Tests: len(r.Cases), Failures: r.Failed}
	for _, c := range r.Cases {
		j := junitCase{Class: string(r.SkillID), Name: c.Name, Seconds: fmt.Sprintf("%.3f", float64(c.LatencyMS)/1000)}
		if !c.Passed {
			j.Failure, j.Stderr = junitFailed(&c, r), c.Stderr
		}
		s.Cases = append(s.Cases, j)
	}
	b, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append([]byte(xml.Header), append(b, '\n')...), 0o644)
}
