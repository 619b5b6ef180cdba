package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"openskill/host/store/pgtest"
	"openskill/sdk/skill"
)

// Packages that one host adds to an upload are used on the other host of the database, and go there
// too; an upload can ask for them.
func TestPackagesOnTwoHosts(t *testing.T) {
	wheels(t, "words-1.0", "words-2.0")
	url := pgtest.Start(t)
	start := func() *serving {
		s := pythonSettings(t)
		s.DatabaseURL = url
		v := serve(t, s)
		go func() { // it logs every call, and its log is not read
			for v.log.Scan() {
			}
		}()
		return v
	}
	one, two := start(), start()
	added := func(a answer) *skill.UploadPackages {
		t.Helper()
		expect(t, "the upload", a, "201 "+a.Version+" disabled")
		if a.Packages == nil {
			t.Fatal("the answer says nothing about packages")
		}
		return a.Packages
	}
	if got := added(one.upload(t, "?packages=true", greeter(t, "1.0.0", "words==1.0\n"))); !slices.Equal(got.Added, []string{"python:words 1.0"}) || got.Error != nil {
		t.Errorf("with the upload: %+v", got)
	}
	expect(t, "enabling", one.act(t, "greet", "enable", ""), "200 1.0.0 enabled")
	soon(t, "a call on the other host", `200 {"v":"words-1.0"}`, func() answer { return two.call(t, "greet") })
	expect(t, "a call on the host that added them", one.call(t, "greet"), `200 {"v":"words-1.0"}`)

	two.adds(t, "1.0.0", `{"packages": ["python:words"], "update": true}`, "python:words 2.0")
	soon(t, "newer ones of the other", `200 {"v":"words-2.0"}`, func() answer { return one.call(t, "greet") })
	if status, _, failed := one.packagesOf(t, "DELETE", "1.0.0", ""); status != 200 {
		t.Fatalf("%d %+v", status, failed)
	}
	soon(t, "removed on the other", "502 GUEST_EXIT", func() answer { return two.call(t, "greet") })

	// An upload that needs no packages is accepted; one whose package is missing is stored without.
	plain := map[string][]byte{"archive": zipped(t, map[string]string{
		"skill.yaml": manifestOf("plain", "1.0.0", "type: wasm\nruntime: python\nentry: main.py\n"), "main.py": "import json\nprint(json.dumps({}))\n",
	})}
	if got := added(two.upload(t, "?packages=true", plain)); len(got.Added) != 0 || got.Error != nil {
		t.Errorf("without packages: %+v", got)
	}
	if got := added(two.upload(t, "?packages=true", greeter(t, "2.0.0", "missing==1\n"))); got.Error == nil || !strings.Contains(fmt.Sprint(got.Error), "missing") {
		t.Errorf("with a missing package: %+v", got)
	}
	two.adds(t, "2.0.0", `{"packages": ["python:words==1.0"]}`, "python:words 1.0")
}
