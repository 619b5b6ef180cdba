package catalogue

import (
	"encoding/json"
	"errors"
	"testing"

	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// FuzzBodies gives what operators may send to both readers. Whatever it is, the answer is
// a change that can be made, or an error that is fit to be shown; a definition that was
// taken is taken again when it is read back.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		`{"is_enabled": false}`, `{"description": null, "cost_metadata": {"rate_limit_per_minute": 30}}`, `{"cost_metadata": {}}`, `{"is_enabled": true, "is_enabled": 1}`,
		`{"name": "a", "description": "d", "input_schema": {"type": "object"}, "output_schema": {}}`,
		`{"name": "a", "description": "\ud83d\ude00\u2028: - {", "input_schema": {"const": 1e5}, "output_schema": {"enum": ["<<", "&a", "*a", "!!int"]}, "cost_metadata": {"estimated_tokens": 1}}`,
		`{"name": "a", "description": "d", "input_schema": {}, "output_schema": {}, "type": "wasm", "runtime": "wasi", "entry": "m.wasm", "permissions": {"http": ["https://a.example/"]}}`,
	} {
		f.Add([]byte(seed))
	}
	o := manifest.Options{Defaults: limits(), Caps: limits()}
	own := musttest.Get(manifest.Open(o))(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		patch, err := parsePatch(body)
		shownWell(t, err)
		c := musttest.Get(OpenDefinitions(t.Context(), DefinitionOptions{DB: rowsOf(t).DB, Own: own, Registry: o}))(t)
		d, createErr := c.Create(t.Context(), skill.Local(), body)
		shownWell(t, createErr)
		if createErr != nil {
			return
		}
		if !c.Now().Has(d.ID) || !json.Valid(d.InputSchema) || !json.Valid(d.OutputSchema) {
			t.Errorf("%s was taken, and reads back as %+v", body, d)
		}
		if err == nil {
			t.Errorf("%s is a change and a definition: %+v", body, patch)
		}
	})
}

func shownWell(t *testing.T, err error) {
	t.Helper()
	switch e, ok := errors.AsType[*skill.Error](err); {
	case err == nil:
	case !ok:
		t.Errorf("%v is no error to be shown", err)
	case e.Message == "" || len(e.Message) > skill.MaxMessage || e.Code == skill.Internal:
		t.Errorf("%s: %q", e.Code, e.Message)
	}
}
