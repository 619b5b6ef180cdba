package catalogue

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// seen is what a tenant finds of a skill: the version that calls get, and the state
// of each.
func seen(s *Store, tenant string, id skill.ID) string {
	found, err := s.Get(tenant, id, "")
	if err != nil {
		return string(skill.CodeOf(err))
	}
	d := found.Descriptor
	out := fmt.Sprintf("%s %v:", d.Version, d.Enabled)
	all, err := s.Versions(tenant, id)
	if err != nil {
		return err.Error()
	}
	for _, v := range all {
		out += fmt.Sprintf(" %s=%s", v.Descriptor.Version, v.Descriptor.State)
		if v.Descriptor.Shared {
			out += "+shared"
		}
	}
	return out
}

// step is one decision, and what its tenant finds after it.
type step struct {
	do    string
	code  skill.Code
	finds string
}

func (s *Store) play(do string) error {
	what, version, _ := strings.Cut(do, " ")
	var err error
	switch what {
	case "publish":
		_, err = publish(s, "acme", "up", version, version)
	case "publish-other":
		_, err = publish(s, "acme", "up", version, "other files")
	case "enable":
		_, err = s.decide(to(Enable, "acme", "up", version))
	case "release":
		_, err = s.decide(asOperator(to(Enable, "acme", "up", version)))
	case "disable":
		_, err = s.decide(to(Disable, "acme", "up", version))
	case "rollback":
		_, err = s.decide(to(Rollback, "acme", "up", ""))
	case "delete":
		_, err = s.decide(to(Delete, "acme", "up", version))
	case "approve":
		_, err = s.decide(asOperator(to(Approve, "acme", "up", version)))
	case "quarantine":
		err = s.Quarantine("acme", "up", version, "it crashed")
	case "sweep":
		s.Sweep()
	default:
		panic(do)
	}
	return err
}

// Each history is played twice: in one life of the store, and with a new start after
// each step.
func TestDecisions(t *testing.T) {
	for name, steps := range map[string][]step{
		"nothing there": {
			{"enable", skill.NotFound, "NOT_FOUND"},
			{"disable", skill.NotFound, "NOT_FOUND"},
			{"rollback", skill.NotFound, "NOT_FOUND"},
			{"delete 1.0.0", skill.NotFound, "NOT_FOUND"},
			{"approve", skill.NotFound, "NOT_FOUND"},
			{"quarantine 1.0.0", skill.NotFound, "NOT_FOUND"},
		},
		"enable the newest": {
			{"publish 1.0.0", "", "1.0.0 false: 1.0.0=disabled"},
			{"enable", "", "1.0.0 true: 1.0.0=enabled"},
			{"publish 1.1.0", "", "1.0.0 true: 1.0.0=enabled 1.1.0=disabled"},
			{"enable", "", "1.1.0 true: 1.0.0=enabled 1.1.0=enabled"},
			{"enable 9.9.9", skill.NotFound, "1.1.0 true: 1.0.0=enabled 1.1.0=enabled"},
		},
		"back and forth": {
			{"publish 1.0.0", "", "1.0.0 false: 1.0.0=disabled"},
			{"rollback", skill.Conflict, "1.0.0 false: 1.0.0=disabled"},
			{"enable", "", "1.0.0 true: 1.0.0=enabled"},
			{"rollback", skill.Conflict, "1.0.0 true: 1.0.0=enabled"},
			{"publish 2.0.0", "", "1.0.0 true: 1.0.0=enabled 2.0.0=disabled"},
			{"enable 2.0.0", "", "2.0.0 true: 1.0.0=enabled 2.0.0=enabled"},
			{"rollback", "", "1.0.0 true: 1.0.0=enabled 2.0.0=disabled"},
			{"disable", "", "1.0.0 false: 1.0.0=disabled 2.0.0=disabled"},
			{"enable", "", "1.0.0 true: 1.0.0=enabled 2.0.0=disabled"}, // what was gone back from stays off
			{"enable 2.0.0", "", "2.0.0 true: 1.0.0=enabled 2.0.0=enabled"},
			{"disable 2.0.0", "", "2.0.0 false: 1.0.0=enabled 2.0.0=disabled"}, // and nothing takes its place by itself
			{"rollback", "", "1.0.0 true: 1.0.0=enabled 2.0.0=disabled"},
		},
		"deleted": {
			{"publish 1.0.0", "", "1.0.0 false: 1.0.0=disabled"},
			{"publish 2.0.0", "", "2.0.0 false: 1.0.0=disabled 2.0.0=disabled"},
			{"enable 1.0.0", "", "1.0.0 true: 1.0.0=enabled 2.0.0=disabled"},
			{"enable 2.0.0", "", "2.0.0 true: 1.0.0=enabled 2.0.0=enabled"},
			{"delete 1.0.0", "", "2.0.0 true: 2.0.0=enabled"},
			{"rollback", skill.Conflict, "2.0.0 true: 2.0.0=enabled"},
			{"publish-other 1.0.0", skill.Conflict, "2.0.0 true: 2.0.0=enabled"},
			{"publish 1.0.0", "", "2.0.0 true: 1.0.0=disabled 2.0.0=enabled"}, // as it was
			{"enable 1.0.0", "", "1.0.0 true: 1.0.0=enabled 2.0.0=enabled"},
			{"delete 1.0.0", "", "2.0.0 false: 2.0.0=enabled"}, // by its name only, until someone decides
			{"delete 2.0.0", "", "NOT_FOUND"},
			{"delete 2.0.0", skill.NotFound, "NOT_FOUND"},
			{"enable 2.0.0", skill.NotFound, "NOT_FOUND"},
			{"sweep", "", "NOT_FOUND"},
			{"publish 2.0.0", "", "2.0.0 false: 2.0.0=disabled"},
		},
		"quarantined": {
			{"publish 1.0.0", "", "1.0.0 false: 1.0.0=disabled"},
			{"enable", "", "1.0.0 true: 1.0.0=enabled"},
			{"publish 2.0.0", "", "1.0.0 true: 1.0.0=enabled 2.0.0=disabled"},
			{"enable", "", "2.0.0 true: 1.0.0=enabled 2.0.0=enabled"},
			{"quarantine 2.0.0", "", "2.0.0 false: 1.0.0=enabled 2.0.0=quarantined"},
			{"enable 2.0.0", skill.Forbidden, "2.0.0 false: 1.0.0=enabled 2.0.0=quarantined"},
			{"enable", skill.Forbidden, "2.0.0 false: 1.0.0=enabled 2.0.0=quarantined"},
			{"approve 2.0.0", skill.Forbidden, "2.0.0 false: 1.0.0=enabled 2.0.0=quarantined"},
			{"rollback", "", "1.0.0 true: 1.0.0=enabled 2.0.0=quarantined"},
			{"release 2.0.0", "", "2.0.0 true: 1.0.0=enabled 2.0.0=enabled"},
			{"quarantine 1.0.0", "", "2.0.0 true: 1.0.0=quarantined 2.0.0=enabled"},
			{"rollback", skill.Conflict, "2.0.0 true: 1.0.0=quarantined 2.0.0=enabled"},
		},
		"approved": {
			{"publish 1.0.0", "", "1.0.0 false: 1.0.0=disabled"},
			{"approve", "", "1.0.0 false: 1.0.0=disabled+shared"},
			{"enable", "", "1.0.0 true: 1.0.0=enabled+shared"},
			{"approve 3.0.0", skill.NotFound, "1.0.0 true: 1.0.0=enabled+shared"},
		},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %v", name, restart), func(t *testing.T) {
				dir := t.TempDir()
				s := open(t, dir, nil)
				for i, step := range steps {
					err := s.play(step.do)
					if skill.CodeOf(err) != step.code {
						t.Fatalf("%d %s: %v, want %q", i, step.do, err, step.code)
					}
					if restart {
						_ = s.Close()
						s = open(t, dir, nil)
					}
					if diff := cmp.Diff(step.finds, seen(s, "acme", "up")); diff != "" {
						t.Fatalf("after %d %s:\n%s", i, step.do, diff)
					}
				}
			})
		}
	}
}

// The files of a deleted version stay for the grace.
func TestGrace(t *testing.T) {
	c := &clock{now: time.Unix(1e9, 0)}
	s := open(t, t.TempDir(), func(o *Options) { o.Grace, o.Now = time.Minute, c.Now })
	mustPublish(t, s, "acme", "up", "1.0.0", "one")
	mustPublish(t, s, "acme", "up", "2.0.0", "two")
	folder := must(s.Get("acme", "up", "1.0.0")).Folder
	musttest.Do(t, s.Quarantine("acme", "up", "2.0.0", "it crashed"))
	musttest.Get(s.decide(asOperator(to(Enable, "acme", "up", "2.0.0"))))(t)
	musttest.Get(s.decide(to(Delete, "acme", "up", "1.0.0")))(t)
	c.pass(time.Minute - 1)
	s.Sweep()
	if _, err := os.Stat(filepath.Join(folder, "skill.yaml")); err != nil {
		t.Errorf("within the grace: %v", err)
	}
	c.pass(1)
	s.Sweep()
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("after the grace: %v", err)
	}
	musttest.Get(s.decide(to(Delete, "acme", "up", "2.0.0")))(t)
	c.pass(time.Hour)
	s.Sweep()
	if list := folders(t, s); len(list) > 0 || s.skills[key{"acme", "up"}] == nil {
		t.Errorf("of a skill without versions there is %v, and its record %v", list, s.skills[key{"acme", "up"}])
	}
	if u := s.usage("acme"); u.bytes != 0 || u.skills != 0 {
		t.Errorf("%+v is counted of nothing", u)
	}
}

// A03: what tenants find, and whose skill the operator means.
func TestWhoFindsWhat(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	mustPublish(t, s, "a", "up", "1.0.0", "a1")
	mustPublish(t, s, "a", "up", "2.0.0", "a2")
	mustPublish(t, s, "a", "private", "1.0.0", "x")
	mustPublish(t, s, "b", "other", "1.0.0", "x")
	for _, v := range []string{"1.0.0", "2.0.0"} {
		musttest.Get(s.decide(to(Enable, "a", "up", v)))(t)
	}
	_, hidden := s.Get("b", "up", "")
	_, nothing := s.Get("b", "uq", "")
	if strings.ReplaceAll(hidden.Error(), "up", "uq") != nothing.Error() {
		t.Errorf("what is hidden is told apart: %v and %v", hidden, nothing)
	}
	musttest.Get(s.decide(asOperator(to(Approve, "a", "up", "1.0.0"))))(t)
	for tenant, want := range map[string]string{
		"a": "2.0.0 true: 1.0.0=enabled+shared 2.0.0=enabled",
		"b": "1.0.0 true: 1.0.0=enabled+shared",
		"":  "1.0.0 true: 1.0.0=enabled+shared",
	} {
		if got := seen(s, tenant, "up"); got != want {
			t.Errorf("tenant %q finds %s, want %s", tenant, got, want)
		}
	}
	if _, err := s.Get("b", "up", "2.0.0"); skill.CodeOf(err) != skill.NotFound || strings.Contains(err.Error(), "2.0.0") {
		t.Errorf("a version that is not approved: %v", err)
	}
	ids := func(tenant string) (list []string) {
		for _, f := range must(s.List(tenant)) {
			list = append(list, string(f.Descriptor.ID))
		}
		return list
	}
	if diff := cmp.Diff(map[string][]string{"a": {"private", "up"}, "b": {"other", "up"}, "": {"up"}}, map[string][]string{"a": ids("a"), "b": ids("b"), "": ids("")}); diff != "" {
		t.Error(diff)
	}

	mustPublish(t, s, "b", "up", "9.0.0", "b9")
	if got := seen(s, "b", "up"); got != "9.0.0 false: 9.0.0=disabled" {
		t.Errorf("its own goes first: %s", got)
	}
	_, err := s.decide(asOperator(to(Approve, "b", "up", "9.0.0")))
	wants(t, err, skill.Conflict)

	for name, c := range map[string]struct {
		caller, named string
		id            skill.ID
		operator      bool
		owner         string
		code          skill.Code
	}{
		"one's own":                     {caller: "a", id: "up", owner: "a"},
		"one's own, by name":            {caller: "a", named: "a", id: "up", owner: "a"},
		"another's":                     {caller: "b", id: "private", code: skill.NotFound},
		"another's by name":             {caller: "b", named: "a", id: "private", code: skill.Forbidden},
		"the operator's own goes first": {caller: "b", id: "up", operator: true, owner: "b"},
		"the only one":                  {caller: "ops", id: "private", operator: true, owner: "a"},
		"one of two":                    {caller: "ops", id: "up", operator: true, code: skill.Conflict},
		"one of two by name":            {caller: "ops", named: "b", id: "up", operator: true, owner: "b"},
		"nobody's":                      {caller: "ops", id: "nope", operator: true, code: skill.NotFound},
		"not that tenant's":             {caller: "ops", named: "b", id: "private", operator: true, code: skill.NotFound},
	} {
		d := to(Enable, c.named, c.id, "")
		d.By = author(c.caller)
		if c.operator {
			d = asOperator(d)
			d.By.Tenant = c.caller
		}
		owner, err := s.owner(&d)
		if owner != c.owner || skill.CodeOf(err) != c.code {
			t.Errorf("%s: %q, %v", name, owner, err)
		}
	}
	musttest.Get(s.decide(to(Disable, "a", "up", "1.0.0")))(t)
	if got := seen(s, "c", "up"); got != "1.0.0 false: 1.0.0=disabled+shared" {
		t.Errorf("approved and disabled: %s", got)
	}
	musttest.Get(s.decide(to(Delete, "a", "up", "1.0.0")))(t)
	if got := seen(s, "c", "up"); got != "NOT_FOUND" {
		t.Errorf("approved and deleted: %s", got)
	}
}

// A quarantine outlives the files of its version: the same files come back to it.
func TestQuarantineOutlivesFiles(t *testing.T) {
	dir := t.TempDir()
	c := &clock{now: time.Unix(1e9, 0)}
	change := func(o *Options) { o.Grace, o.Now, o.Versions = time.Minute, c.Now, 2 }
	s := open(t, dir, change)
	for _, v := range []string{"1.0.0", "2.0.0"} {
		mustPublish(t, s, "acme", "up", v, v)
		musttest.Do(t, s.Quarantine("acme", "up", v, "it crashed"))
		musttest.Get(s.decide(to(Delete, "acme", "up", v)))(t)
	}
	c.pass(time.Minute)
	s.Sweep()
	if list := folders(t, s); len(list) != 0 {
		t.Errorf("on disk: %v", list)
	}
	if u := s.usage("acme"); u.bytes != 0 {
		t.Errorf("%d bytes are counted of nothing", u.bytes)
	}
	_ = s.Close()
	s = open(t, dir, change)
	if got := seen(s, "acme", "up"); got != "NOT_FOUND" {
		t.Errorf("what is gone: %s", got)
	}
	mustPublish(t, s, "acme", "up", "1.0.0", "1.0.0")
	mustPublish(t, s, "acme", "up", "2.0.1", "mended")
	if got, want := seen(s, "acme", "up"), "2.0.1 false: 1.0.0=quarantined 2.0.1=disabled"; got != want {
		t.Errorf("again: %s, want %s", got, want)
	}
	_, err := s.decide(to(Enable, "acme", "up", "1.0.0"))
	wants(t, err, skill.Forbidden)
}
