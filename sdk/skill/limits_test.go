package skill

import (
	"reflect"
	"testing"
)

// Whoever adds a limit and forgets one of the places of limits.go is told which.
func TestEveryLimitIsInEveryPlace(t *testing.T) {
	var j LimitsJSON
	fields := j.Fields()
	if n := reflect.TypeFor[Limits]().NumField(); n != len(fields) || n != reflect.TypeFor[LimitsJSON]().NumField() {
		t.Fatalf("Limits has %d fields, LimitsJSON %d, Fields gives %d", n, reflect.TypeFor[LimitsJSON]().NumField(), len(fields))
	}
	for i, f := range fields {
		of := reflect.TypeFor[LimitsJSON]().Field(i)
		if want := f.Name + ",omitempty"; of.Tag.Get("json") != want || of.Tag.Get("yaml") != f.Name {
			t.Errorf("%s: Fields calls it %s, its tags say json %q and yaml %q", of.Name, f.Name, of.Tag.Get("json"), of.Tag.Get("yaml"))
		}
		*f.Value = 7
	}
	all := j.Limits()
	if back := all.JSON(); back != j {
		t.Errorf("%+v there and back is %+v", j, back)
	}
	if all.Unset() != "" {
		t.Errorf("%s counts as unset in %+v", all.Unset(), all)
	}
	for i, f := range fields {
		name := reflect.TypeFor[Limits]().Field(i).Name
		*f.Value = 0
		without := j.Limits()
		*f.Value = 3
		less := j.Limits()
		*f.Value = 7
		if got := without.Unset(); got != f.Name {
			t.Errorf("%s: Unset names %q", name, got)
		}
		if got := without.Or(all); got != all {
			t.Errorf("%s: Or gives %+v", name, got)
		}
		if less == all || all.Lower(less) != less || less.Lower(all) != less || without.Lower(all) != all {
			t.Errorf("%s: Lower does not look at it", name)
		}
		*f.Value = f.Most
		most := j.Limits()
		*f.Value = f.Most + 1
		if most == all || j.Limits() != most {
			t.Errorf("%s: more than the most is not held at the most", name)
		}
		*f.Value = 7
	}
}

func TestNoLimitIsNegative(t *testing.T) {
	l := Limits{Timeout: -1}
	if l.Unset() != "timeout_ms" || l.JSON().TimeoutMS != 0 {
		t.Errorf("unset %q, %+v", l.Unset(), l.JSON())
	}
}
