package docs_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"openskill/host/app/metrics"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestMetricsTable: the table in metrics.md is the one of the code.
func TestMetricsTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("| name | type | labels | meaning |\n|---|---|---|---|\n")
	for _, f := range metrics.Table() {
		labels := "none"
		if len(f.Labels) > 0 {
			labels = "`" + strings.Join(f.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, f.Type, labels, f.Help)
	}
	const begin, end = "<!-- metrics: made by go test ./docs -update -->\n", "<!-- end of metrics -->"
	text := page(t, "metrics.md")
	before, rest, ok := strings.Cut(text, begin)
	have, after, closed := strings.Cut(rest, end)
	switch {
	case !ok || !closed:
		t.Fatal("metrics.md has no place for the metrics")
	case have == b.String():
	case *update:
		musttest.Do(t, os.WriteFile("metrics.md", []byte(before+begin+b.String()+end+after), 0o644))
	default:
		t.Errorf("the metrics are others now; run go test ./docs -update\nhave:\n%s\nwant:\n%s", have, b.String())
	}
}

// TestDeployedNames: rules and dashboard ask for families that there are, by labels that
// they have, and for codes that are published.
func TestDeployedNames(t *testing.T) {
	families := map[string]metrics.Family{}
	for _, f := range metrics.Table() {
		families[f.Name] = f
		if f.Type == metrics.Histogram {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				families[f.Name+suffix] = f
			}
		}
	}
	always := []string{"instance", "le", "job"}
	name, by, code := regexp.MustCompile(`openskill_[a-z_]+`), regexp.MustCompile(`by \(([a-z, ]+)\) \((?:rate|increase)\((openskill_[a-z_]+)`), regexp.MustCompile(`code=~"([A-Z_|]+)"`)
	for file, least := range map[string]int{"../deploy/prometheus/alerts.yaml": 8, "../deploy/grafana/openskill.json": 15} {
		b := musttest.Get(os.ReadFile(file))(t)
		text := string(b)
		found := map[string]bool{}
		for _, n := range name.FindAllString(text, -1) {
			found[n] = true
			if families[n].Name == "" {
				t.Errorf("%s asks for %s, which no host counts", file, n)
			}
		}
		if len(found) < least {
			t.Errorf("%s asks for %d families only", file, len(found))
		}
		for _, m := range by.FindAllStringSubmatch(text, -1) {
			for _, label := range strings.Split(m[1], ", ") {
				if !slices.Contains(always, label) && !slices.Contains(families[m[2]].Labels, label) {
					t.Errorf("%s sums %s by %s, which is no label of it", file, m[2], label)
				}
			}
		}
		for _, m := range code.FindAllStringSubmatch(text, -1) {
			for _, c := range strings.Split(m[1], "|") {
				if !skill.Code(c).Known() {
					t.Errorf("%s asks for the code %s, which is not published", file, c)
				}
			}
		}
	}
}
