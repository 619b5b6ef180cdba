// A window keeps what happened on this host in the last hour, in memory: figures by
// minute for each tenant, and the calls that end now for those who watch.
//
// It is for people who look at a host. What must not be forgotten is in the chain.

package records

import (
	"math"
	"slices"
	"sync"
	"time"
)

// Minutes is how far back figures go.
const Minutes = 60

// EndedCall is a call that has ended.
type EndedCall struct {
	ID        string // of its execution; "" where none is on record
	Tenant    string
	Principal string
	Kind      string // the principal's type
	Skill     string // "" where there is no such skill, or the caller may not know of it
	Version   string
	Code      string // "" of a success
	Ended     time.Time
	Took      time.Duration
	Fuel      uint64
	Memory    uint64 // the most linear memory that it had, in bytes
}

// WindowOptions bound a [Window]. Zero fields mean the defaults.
type WindowOptions struct {
	Tenants int // whose figures are kept apart; 0: 256. Those who come later are counted together
	Skills  int // of each of them; 0: 100, likewise
	Now     func() time.Time
}

// Others is the name under which those are counted together that there is no room for.
const Others = "(others)"

// mostCodes is how many codes are counted apart. There are fewer; what a caller could make up
// must not grow without end all the same.
const mostCodes = 64

// Window holds figures of the last hour. It is safe for concurrent use.
type Window struct {
	o WindowOptions

	mu      sync.Mutex
	all     *series
	tenants map[string]*series
}

// NewWindow makes a window in which nothing has happened.
func NewWindow(o WindowOptions) *Window {
	if o.Tenants <= 0 {
		o.Tenants = 256
	}
	if o.Skills <= 0 {
		o.Skills = 100
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Window{o: o, all: newSeries(), tenants: map[string]*series{}}
}

// Add counts a call.
func (w *Window) Add(c *EndedCall) {
	minute := minuteOf(w.o.Now())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all.add(c, minute, w.o.Skills)
	w.tenant(c.Tenant, minute).add(c, minute, w.o.Skills)
}

// Denied counts a request to the network that a skill was not permitted to send.
func (w *Window) Denied(tenant, skill string) {
	minute := minuteOf(w.o.Now())
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range []*series{w.all, w.tenant(tenant, minute)} {
		m := s.at(minute)
		if m.denied == nil {
			m.denied = map[string]uint64{}
		}
		name := skill
		if _, known := m.denied[name]; !known && len(m.denied) >= w.o.Skills {
			name = Others
		}
		m.denied[name]++
	}
}

// tenant finds a tenant's series. The one that was silent for an hour makes room.
func (w *Window) tenant(name string, minute int64) *series {
	if s := w.tenants[name]; s != nil {
		return s
	}
	if len(w.tenants) >= w.o.Tenants {
		for other, s := range w.tenants {
			if s.latest <= minute-Minutes {
				delete(w.tenants, other)
			}
		}
	}
	if len(w.tenants) >= w.o.Tenants {
		name = Others
		if s := w.tenants[name]; s != nil {
			return s
		}
	}
	s := newSeries()
	w.tenants[name] = s
	return s
}

// Tenants are those of whom there are figures, in order of name.
func (w *Window) Tenants() []string {
	minute := minuteOf(w.o.Now())
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for name, s := range w.tenants {
		if s.latest > minute-Minutes {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Figures are those of an hour: of all tenants, or of one.
type Figures struct {
	Minutes []Minute      // the oldest first; always [Minutes] of them, the last one is under way
	Calls   uint64        // of the hour, as all that follows
	Failed  uint64        //
	Codes   []Count       // of those that failed, the most frequent first
	Skills  []SkillCount  // the most called first
	Fuel    uint64        //
	Memory  uint64        // the most that one call had, in bytes
	P50     time.Duration // how long calls took, to about a sixth; 0: there were none
	P95     time.Duration //
	P99     time.Duration //
	Denied  []Count       // requests to the network that were denied, by skill, the most frequent first
}

// Minute is one of them.
type Minute struct {
	At            time.Time // when it began
	Calls, Failed uint64
	Fuel, Memory  uint64
	P50, P95      time.Duration // 0: there were no calls
}

// Count is how often something was.
type Count struct {
	Name string
	N    uint64
}

// SkillCount is how often a skill was called.
type SkillCount struct {
	Name      string
	N, Failed uint64
}

// All gives the figures of all tenants.
func (w *Window) All() Figures {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.figures(minuteOf(w.o.Now()))
}

// Of gives the figures of a tenant; of one of whom nothing is known, zeros.
func (w *Window) Of(tenant string) Figures {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.tenants[tenant]
	if s == nil {
		s = newSeries()
	}
	return s.figures(minuteOf(w.o.Now()))
}

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// series are the minutes of one tenant, in a ring.
type series struct {
	latest  int64 // the minute that was last counted in
	minutes [Minutes]minute
	skills  map[string]*skillSeries
}

type minute struct {
	at            int64
	calls, failed uint64
	fuel, memory  uint64
	codes         map[string]uint64
	denied        map[string]uint64 // by skill
	took          times
}

// skillSeries are the calls of a skill, by ten minutes.
type skillSeries struct{ slots [Minutes/10 + 1]skillSlot }

type skillSlot struct {
	at        int64 // in tens of minutes
	n, failed uint64
}

func newSeries() *series { return &series{skills: map[string]*skillSeries{}} }

func (s *series) add(c *EndedCall, at int64, mostSkills int) {
	m := s.at(at)
	m.calls++
	m.fuel += c.Fuel
	m.memory = max(m.memory, c.Memory)
	m.took.add(c.Took)
	if c.Code != "" {
		m.failed++
		name := c.Code
		if m.codes == nil {
			m.codes = map[string]uint64{}
		}
		if _, known := m.codes[name]; !known && len(m.codes) >= mostCodes {
			name = Others
		}
		m.codes[name]++
	}
	if c.Skill != "" {
		s.skill(c, at, mostSkills)
	}
}

// at gives the minute that is counted in now.
func (s *series) at(minuteNow int64) *minute {
	s.latest = max(s.latest, minuteNow)
	m := &s.minutes[minuteNow%Minutes]
	if m.at != minuteNow {
		*m = minute{at: minuteNow}
	}
	return m
}

func (s *series) skill(c *EndedCall, at int64, most int) {
	name, at := c.Skill, at/10
	k := s.skills[name]
	if k == nil && len(s.skills) >= most {
		for other, o := range s.skills {
			if n, _ := o.sum(at); n == 0 {
				delete(s.skills, other)
			}
		}
	}
	if k == nil && len(s.skills) >= most {
		name = Others
		k = s.skills[name]
	}
	if k == nil {
		k = &skillSeries{}
		s.skills[name] = k
	}
	slot := &k.slots[at%int64(len(k.slots))]
	if slot.at != at {
		*slot = skillSlot{at: at}
	}
	slot.n++
	if c.Code != "" {
		slot.failed++
	}
}

// sum counts the slots of the last hour. now is in tens of minutes.
func (k *skillSeries) sum(now int64) (n, failed uint64) {
	for i := range k.slots {
		if slot := &k.slots[i]; slot.at > now-int64(len(k.slots)) && slot.at <= now {
			n, failed = n+slot.n, failed+slot.failed
		}
	}
	return n, failed
}

func (s *series) figures(now int64) Figures {
	var f Figures
	codes, denied := map[string]uint64{}, map[string]uint64{}
	var took times
	for at := now - Minutes + 1; at <= now; at++ {
		out := Minute{At: time.Unix(at*60, 0).UTC()}
		m := &s.minutes[((at%Minutes)+Minutes)%Minutes]
		if m.at == at {
			for name, n := range m.denied {
				denied[name] += n
			}
		}
		if m.at == at && m.calls > 0 {
			out.Calls, out.Failed, out.Fuel, out.Memory = m.calls, m.failed, m.fuel, m.memory
			out.P50, out.P95 = m.took.percentile(50), m.took.percentile(95)
			f.Calls, f.Failed, f.Fuel, f.Memory = f.Calls+m.calls, f.Failed+m.failed, f.Fuel+m.fuel, max(f.Memory, m.memory)
			took.join(&m.took)
			for code, n := range m.codes {
				codes[code] += n
			}
		}
		f.Minutes = append(f.Minutes, out)
	}
	f.P50, f.P95, f.P99 = took.percentile(50), took.percentile(95), took.percentile(99)
	f.Codes, f.Denied = counts(codes), counts(denied)
	for name, k := range s.skills {
		if n, failed := k.sum(now / 10); n > 0 {
			f.Skills = append(f.Skills, SkillCount{name, n, failed})
		}
	}
	slices.SortFunc(f.Skills, func(a, b SkillCount) int { return byCount(a.N, b.N, a.Name, b.Name) })
	return f
}

func byCount(a, b uint64, nameA, nameB string) int {
	switch {
	case a > b || a == b && nameA < nameB:
		return -1
	case a == b && nameA == nameB:
		return 0
	}
	return 1
}

// times are how long calls took, in buckets that are a third of an octave wide, from 16 µs
// to more than an hour.
type times struct {
	n       uint64
	buckets [bucketCount]uint32
}

const (
	bucketCount = 84
	perOctave   = 3
	shortest    = 16 * time.Microsecond
)

func (t *times) add(d time.Duration) {
	i := 0
	if d > shortest {
		i = int(math.Ceil(math.Log2(float64(d)/float64(shortest)) * perOctave))
	}
	t.buckets[min(i, bucketCount-1)]++
	t.n++
}

func (t *times) join(o *times) {
	t.n += o.n
	for i, n := range o.buckets {
		t.buckets[i] += n
	}
}

// percentile is the middle of the bucket in which the call is that p of a hundred are not
// slower than.
func (t *times) percentile(p uint64) time.Duration {
	if t.n == 0 {
		return 0
	}
	rank := max((t.n*p+99)/100, 1)
	for i, n := range t.buckets {
		if rank <= uint64(n) {
			return time.Duration(float64(shortest) * math.Exp2((float64(i)-0.5)/perOctave))
		}
		rank -= uint64(n)
	}
	return 0
}

// counts lists how often each was, the most frequent first.
func counts(of map[string]uint64) []Count {
	var list []Count
	for name, n := range of {
		list = append(list, Count{name, n})
	}
	slices.SortFunc(list, func(a, b Count) int { return byCount(a.N, b.N, a.Name, b.Name) })
	return list
}
