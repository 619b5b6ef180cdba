package catalogue

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestHammer lets two tenants and the host do everything at once to the same few skills.
// What the store then says is what is on the disk, is what the next store finds, and is
// what the quota counts.
func TestHammer(t *testing.T) {
	dir := t.TempDir()
	c := &clock{now: time.Unix(1e9, 0)}
	change := func(o *Options) {
		o.Grace, o.Now, o.Versions, o.Skills, o.Bytes = time.Minute, c.Now, 3, 2, 40*block
	}
	s := open(t, dir, change)
	tenants, ids, names := []string{"acme", "Acme & Sons"}, []skill.ID{"a", "b", "c"}, []string{"1.0.0", "1.1.0", "2.0.0", "3.0.0"}
	var all sync.WaitGroup
	var published atomic.Int32
	for worker := range uint64(8) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(worker, 6))
			for range 60 {
				tenant, id, name := tenants[random.IntN(2)], ids[random.IntN(3)], names[random.IntN(4)]
				var err error
				switch random.IntN(12) {
				case 0, 1, 2, 3:
					if _, err = publish(s, tenant, id, name, fmt.Sprint(random.IntN(2))); err == nil {
						published.Add(1)
					}
				case 4, 5:
					d := to(Enable, tenant, id, name)
					if random.IntN(2) == 0 {
						d = asOperator(d)
					}
					_, err = s.decide(d)
				case 6:
					_, err = s.decide(to(Disable, tenant, id, name))
				case 7:
					_, err = s.decide(to(Rollback, tenant, id, ""))
				case 8:
					_, err = s.decide(to(Delete, tenant, id, name))
				case 9:
					_, err = s.decide(asOperator(to(Approve, tenant, id, name)))
				case 10:
					err = s.Quarantine(tenant, id, name, "it is tried")
				case 11:
					c.pass(20 * time.Second)
					s.Sweep()
				}
				switch code := skill.CodeOf(err); code {
				case "", skill.NotFound, skill.Conflict, skill.Forbidden, skill.PayloadTooLarge:
				default:
					t.Errorf("%s %s %s: %v", tenant, id, name, err)
				}
				if _, err := s.List(tenant); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	if len(s.reserved) > 0 || len(s.garbage) > 0 {
		t.Errorf("left: %v, %v", s.reserved, s.garbage)
	}
	before := map[key]string{}
	for _, tenant := range tenants {
		var counted int64
		for _, id := range ids {
			k := key{tenant, id}
			before[k] = seen(s, tenant, id)
			r := s.skills[k]
			if r == nil {
				continue
			}
			for _, v := range r.kept() {
				counted += spaceOf(s.folder(k, v))
			}
		}
		if space := s.usage(tenant).bytes; space != counted || space > 40*block {
			t.Errorf("%s: %d bytes are counted, %d are on the disk", tenant, space, counted)
		}
	}
	named := 0
	for _, r := range s.skills {
		named += len(r.kept())
	}
	if list := folders(t, s); len(list) != named {
		t.Errorf("%d versions, and on the disk %q", named, list)
	}
	if left, err := os.ReadDir(s.staging()); err != nil || len(left) > 0 {
		t.Errorf("left in staging: %v, %v", left, err)
	}
	musttest.Do(t, s.Close())
	s = open(t, dir, change)
	for k, was := range before {
		if is := seen(s, k.tenant, k.id); is != was {
			t.Errorf("%v: the next store says %s, the last said %s", k, is, was)
		}
	}
	if published.Load() == 0 {
		t.Error("nothing was published, so nothing was tried")
	}
}
