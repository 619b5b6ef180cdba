// Package promcheck holds deploy/ to the parsers of Prometheus itself, which are a module
// of their own: nothing that runs needs them.
package promcheck

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

func TestRules(t *testing.T) {
	groups, errs := rulefmt.ParseFile("../../deploy/prometheus/alerts.yaml", false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil || len(groups.Groups) == 0 || len(groups.Groups[0].Rules) < 7 {
		t.Fatalf("%+v", groups)
	}
}

func TestDashboard(t *testing.T) {
	b, err := os.ReadFile("../../deploy/grafana/openskill.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			n++
			if _, err := parser.NewParser(parser.Options{}).ParseExpr(strings.ReplaceAll(q.Expr, "$__rate_interval", "5m")); err != nil {
				t.Errorf("%s: %s: %v", p.Title, q.Expr, err)
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d queries", n)
	}
}
