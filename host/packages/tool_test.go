package packages

import (
	"slices"
	"testing"
)

// TestEnvironmentOfTools holds that pip and npm get their settings, and none of the host's secrets.
func TestEnvironmentOfTools(t *testing.T) {
	all := []string{"PATH=/bin", "OPENSKILL_DATABASE_URL=x", "openskill_a=x", "OPENAI_API_KEY=x", "GITHUB_TOKEN=x", "PGPASSWORD=x", "PIP_INDEX_URL=y", "NPM_TOKEN=y", "npm_config_key=y", "HTTPS_PROXY=y"}
	want := []string{"PATH=/bin", "PIP_INDEX_URL=y", "NPM_TOKEN=y", "npm_config_key=y", "HTTPS_PROXY=y"}
	if got := kept(all); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
