package client

import (
	"net/http"
	"strings"
	"testing"
)

func TestPackages(t *testing.T) {
	t.Parallel()
	const changed = `{"id": "up", "version": "1.0.0", "digest": "", "state": "disabled", "packages": null, "added": ["python:words 1.0"], "removed": []}`
	c := answers(t, nil, map[string]http.HandlerFunc{
		"POST /skills/up/versions/1.0.0/packages":                   wants(t, `{"packages":["python:words"],"update":true,"tenant":"acme"}`, changed),
		"DELETE /skills/up/versions/1.0.0+b/packages?tenant=a%2Fb":  says(200, changed),
		"GET /skills/up/versions/1.0.0?tenant=acme":                 says(200, `{"id": "up", "version": "1.0.0", "report": {"packages": {}}}`),
		"GET /skills/up/versions/1.0.0/file?path=a%26b&tenant=acme": says(200, "text"),
		"GET /skills/up/versions/1.0.0/sbom":                        says(200, `{"bomFormat": "CycloneDX"}`),
		"POST /skills?packages=true":                                says(201, `{"id": "up", "packages": {"added": [], "error": {"code": "TIMEOUT"}}}`),
		"POST /skills/up/versions/9.0.0/packages":                   says(404, `{"error": {"code": "NOT_FOUND", "status": 404, "message": "no such version"}}`),
	})
	ctx := t.Context()
	if out, err := c.AddPackages(ctx, "up", "1.0.0", &PackageWish{Packages: []string{"python:words"}, Update: true, Tenant: "acme"}); err != nil || out.Added[0] != "python:words 1.0" {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err := c.RemovePackages(ctx, "up", "1.0.0+b", "a/b"); err != nil || out.ID != "up" {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err := c.Version(ctx, "up", "1.0.0", "acme"); err != nil || string(out.Report) != `{"packages": {}}` {
		t.Errorf("%+v, %v", out, err)
	}
	if bill, err := c.Bill(ctx, "up", "1.0.0", ""); err != nil || string(bill) != `{"bomFormat": "CycloneDX"}` {
		t.Errorf("%s, %v", bill, err)
	}
	if b, err := c.SkillFile(ctx, "up", "1.0.0", "a&b", "acme"); err != nil || string(b) != "text" {
		t.Errorf("%s, %v", b, err)
	}
	if out, err := c.Upload(ctx, &Upload{Archive: []byte("x"), Packages: true}); err != nil || out.Packages.Error == nil {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err := c.Upload(ctx, &Upload{Archive: []byte("x"), Packages: true, DryRun: true}); err == nil {
		t.Error("a dry run adds packages")
	}
	for _, version := range []string{"9.0.0", "", ".."} {
		if _, err := c.AddPackages(ctx, "up", version, &PackageWish{}); err == nil {
			t.Errorf("%q has packages", version)
		}
	}
	if _, err := c.RemovePackages(ctx, "../x", "1.0.0", ""); err == nil || strings.Contains(err.Error(), "404") {
		t.Errorf("an id that is none: %v", err)
	}
}
