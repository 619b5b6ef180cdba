package bench

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"openskill/internal/measure"

	"github.com/google/go-cmp/cmp"
)

func TestMarkdown(t *testing.T) {
	command := func(suite string) string { return "`run " + suite + "`" }
	rows := []measure.Row{
		{Suite: "a", Case: "c|1", Variant: "base", Baseline: "base", MinNS: 1_500, P50NS: 2_000_000, Ratio: 1, MinRatio: 1, N: 5},
		{Suite: "a", Case: "c|1", Variant: "v", MinNS: 1, P50NS: 20_000, P99NS: 30_000, Ratio: 0.01, MinRatio: 0.02, N: 500, Goals: []measure.Verdict{{Goal: "fast", Measured: "20µs", Met: true}, {Goal: "faster", Measured: "20µs"}}},
		{Suite: "m", Case: "memory", Variant: "v", Bytes: 1_500_000, N: 1, Note: "whole"},
		{Suite: "unmarked", Case: "c", Variant: "v", N: 1},
	}
	doc := "# Title\n<!-- bench a: written by a command, not by hand -->\nold\n<!-- end -->\nbetween\n" +
		"<!-- bench m: written by a command, not by hand --><!-- end -->\n<!-- bench z: written by a command, not by hand -->\nkept\n<!-- end -->\n"
	want := `# Title
<!-- bench a: written by a command, not by hand -->
` + "`run a`" + `

| case | variant | minimum | median | p99 | ratio | of minima | runs |
| --- | --- | --- | --- | --- | --- | --- | --- |
| c\|1 | base | 1.5µs | 2ms |  | 1.000 | 1.000 | 5 |
| c\|1 | v | 0s | 20µs | 30µs | 0.01000 | 0.02000 | 500 |

| case | goal | measured | |
| --- | --- | --- | --- |
| c\|1 | fast | 20µs | met |
| c\|1 | faster | 20µs | **missed** |
<!-- end -->
between
<!-- bench m: written by a command, not by hand -->
` + "`run m`" + `

| case | variant | memory | runs | note |
| --- | --- | --- | --- | --- |
| memory | v | 1.5 MB | 1 | whole |
<!-- end -->
<!-- bench z: written by a command, not by hand -->
kept
<!-- end -->
`
	got, err := Markdown([]byte(doc), rows, command)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	twice, err := Markdown(got, rows, command)
	if err != nil || string(twice) != string(got) {
		t.Errorf("written twice it differs: %v", err)
	}
	if _, err := Markdown([]byte("<!-- bench a: written by a command, not by hand -->"), rows, command); err == nil {
		t.Error("marks without an end: want an error")
	}
}

// TestPlot: well-formed, a bar for each value, the longer the larger, and names
// are text.
func TestPlot(t *testing.T) {
	svg := string(Plot([]Chart{{Title: "ms & more", Bars: []Bar{{"a<b", "0.2 ms", 0.2, true}, {"c", "20 ms", 20, false}}}, {Title: "one", Bars: []Bar{{"d", "1", 1, true}}}}))
	d := xml.NewDecoder(strings.NewReader(svg))
	var widths []string
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "rect" {
			for _, at := range e.Attr {
				if at.Name.Local == "width" {
					widths = append(widths, at.Value)
				}
			}
		}
	}
	if d := cmp.Diff([]string{"760", "53.6", "410.0", "410.0"}, widths); d != "" {
		t.Errorf("widths (-want +got):\n%s", d)
	}
	for _, want := range []string{"a&lt;b", "ms &amp; more", "0.2 ms"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in %s", want, svg)
		}
	}
}
