package records

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"openskill/sdk/skill"
)

// VerifyOptions choose what is verified. Their zero value verifies every chain whole.
type VerifyOptions struct {
	Tenant  string // one chain; "": all
	From    uint64 // sequence number to begin at, whose record before is believed; 0: the oldest
	Against []Head // heads that were kept elsewhere: their records must still be there as they were

	Retention time.Duration // for which records must be there, where Against has their time; 0: not known

	Rows bool         // compare executions, as queries show them, with their records too, in both directions
	Each func(*Chain) // is told each chain as soon as it is verified; nil: nobody

	Progress func(tenant string, done, last uint64) // is told now and then how far a chain was read; nil: nobody
}

// Report says of each chain whether it is whole.
type Report struct {
	Chains []Chain
}

// Whole reports whether nothing was found wrong.
func (r *Report) Whole() bool {
	for i := range r.Chains {
		if r.Chains[i].Fault != nil {
			return false
		}
	}
	return true
}

// Chain is what was found of a tenant's chain.
type Chain struct {
	Tenant  string `json:"tenant"`
	First   uint64 `json:"first"`            // sequence numbers of the oldest record and of the last
	Last    uint64 `json:"last"`             // 0: the chain is empty
	Hash    string `json:"hash,omitempty"`   // of the last record
	Records uint64 `json:"records"`          // that were read
	Beyond  bool   `json:"beyond,omitempty"` // it ends before the record to begin at, so that only its last one was read
	Fault   *Fault `json:"fault,omitempty"`  // the first thing that is wrong; nil: the chain is whole

	Faults    []Fault `json:"faults,omitempty"`     // the first MaxFaults things that are wrong, by number
	Found     int     `json:"found,omitempty"`      // all things that are wrong
	LostSigns uint64  `json:"lost_signs,omitempty"` // executions shown with 0 where the record says -0: PostgreSQL dropped the sign of rows that older builds wrote
}

// MaxFaults is how many faults of a chain are listed; more are counted.
const MaxFaults = 100

// Wrong is what can be wrong with a chain.
type Wrong string

// The wrongs.
const (
	Changed   Wrong = "changed"   // a record is not what was hashed
	Missing   Wrong = "missing"   // a record is not there
	Reordered Wrong = "reordered" // a record stands at the place of another one
	Doubled   Wrong = "doubled"   // a record is there twice
	Forged    Wrong = "forged"    // a record is whole by itself, and yet does not belong where it stands
	WrongHead Wrong = "head"      // the ends of the chain are not what its head says
	NotThere  Wrong = "removed"   // a head that was kept cannot be compared: a record says that its record was removed
	WrongRow  Wrong = "row"       // an execution is not what its records say
)

// Fault names a record with which something is wrong.
type Fault struct {
	Wrong       Wrong     `json:"wrong"`
	Seq         uint64    `json:"seq"`
	Kind        string    `json:"kind,omitempty"`         // fields of the record, as far as it is there
	ExecutionID string    `json:"execution_id,omitempty"` //
	Time        time.Time `json:"time,omitzero"`          //
	Message     string    `json:"message"`
}

// String says where something is wrong, and what, in one line.
func (f *Fault) String() string {
	where := fmt.Sprintf("record %d", f.Seq)
	if f.Seq == 0 {
		where = "no record"
	}
	if f.Kind != "" {
		where += " (" + skill.CleanText(f.Kind, 40) + ")"
	}
	if f.ExecutionID != "" {
		where += ", execution " + skill.CleanText(f.ExecutionID, 80)
	}
	if !f.Time.IsZero() {
		where += ", " + f.Time.UTC().Format(time.RFC3339Nano)
	}
	return where + ": " + f.Message
}

// Verify reads chains from their oldest record to their last and finds records that were
// changed, removed, moved, doubled or forged after they were written. A fault does not end
// it. It keeps no more than a page of records in memory. Records may be written and removed
// meanwhile. An error says that the store could not be read; what is wrong with a chain is none.
func Verify(ctx context.Context, s Store, o VerifyOptions) (*Report, error) {
	shown, err := s.Shown(ctx, o.Tenant)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	var busy error
	r := &Report{}
	tell := func(c *Chain) {
		r.Chains = append(r.Chains, *c)
		if o.Each != nil {
			o.Each(c)
		}
	}
	for _, h := range shown {
		if h.Last == 0 && !o.Rows {
			continue // only executions name it
		}
		there[h.Tenant] = true
		c, err := verifyChain(ctx, s, h.Tenant, &o)
		if err != nil && c.Found > 0 || err == nil {
			tell(c) // of one that could not be read to its end, what was found
		}
		if skill.CodeOf(err) == skill.Conflict {
			busy = err // which is of this chain alone
		} else if err != nil {
			return r, err
		}
	}
	// A tenant that is known from elsewhere, and has no head.
	for _, k := range o.Against {
		if !there[k.Tenant] && k.Last > 0 && (o.Tenant == "" || k.Tenant == o.Tenant) {
			there[k.Tenant] = true
			c := &Chain{Tenant: k.Tenant}
			c.add(&Fault{Wrong: Missing, Seq: k.Last, Message: "the whole chain of the saved head is missing"})
			tell(c)
		}
	}
	if o.Tenant != "" && !there[o.Tenant] {
		page, err := s.Records(ctx, o.Tenant, 1, 1)
		if err != nil {
			return r, err
		}
		c := &Chain{Tenant: o.Tenant}
		if len(page) > 0 {
			c.add(faultAt(WrongHead, &page[0], "this tenant has records but no head"))
		}
		tell(c)
	}
	return r, busy
}

// errPruned says that records were removed, on record, while they were read.
var errPruned = errors.New("records were removed during verification")

// add counts a fault, and lists it among the first.
func (c *Chain) add(f *Fault) {
	if f == nil {
		return
	}
	c.Found++
	at, _ := slices.BinarySearchFunc(c.Faults, f, func(have Fault, f *Fault) int {
		return cmp.Or(cmp.Compare(have.Seq-1, f.Seq-1), -1) // those without a record, number 0, are last
	})
	if at < MaxFaults {
		c.Faults = slices.Insert(c.Faults, at, *f)
		c.Faults = c.Faults[:min(len(c.Faults), MaxFaults)]
		c.Fault = &c.Faults[0]
	}
}

// verifyChain gives what was found, after an error too.
func verifyChain(ctx context.Context, s Store, tenant string, o *VerifyOptions) (*Chain, error) {
	for range 100 {
		v := verifier{store: s, o: o}
		err := v.open(ctx, tenant)
		if err == nil {
			err = v.verify(ctx)
		}
		if !errors.Is(err, errPruned) {
			return &v.c, err
		}
	}
	return &Chain{Tenant: tenant}, &skill.Error{
		Op: "audit.Verify", Code: skill.Conflict, Subject: tenant,
		Message: "records are removed faster than they are verified; retry later",
	}
}

// headOf reads one head; a zero one where there is none.
func headOf(ctx context.Context, s Store, tenant string) (Shown, error) {
	all, err := s.Shown(ctx, tenant)
	if err != nil || len(all) == 0 {
		return Shown{Head: Head{Tenant: tenant}}, err
	}
	return all[0], nil
}

// verifier reads one chain.
type verifier struct {
	store  Store
	o      *VerifyOptions
	head   Shown
	c      Chain
	pruned *Pruned // the last record of a removal
	rows   rows    // executions that wait to be compared

	running map[string]*Execution // that no record was seen of; as queries showed them before the head was read
	ended   uint64                // records of ends
	lost    uint64                // executions that are on record and not shown
}

// open reads what the chain is compared with.
func (v *verifier) open(ctx context.Context, tenant string) (err error) {
	if v.o.Rows {
		if v.running, err = runningOf(ctx, v.store, tenant); err != nil {
			return err
		}
	}
	v.head, err = headOf(ctx, v.store, tenant)
	h := v.head
	v.c = Chain{Tenant: h.Tenant, First: h.First, Last: h.Last, Hash: h.LastHash}
	return err
}

func (v *verifier) verify(ctx context.Context) error {
	h := v.head
	prev, next := h.Prev, h.First
	if from := v.from(); from > h.First && h.Last > 0 {
		v.c.Beyond = from > h.Last
		from = min(from, h.Last)
		page, err := v.store.Records(ctx, h.Tenant, from-1, 1)
		if err != nil {
			return err
		}
		if len(page) > 0 && page[0].Seq == from-1 {
			prev, next = page[0].Hash, from
		}
	}
	begin, whole := next, next == h.First
	var since time.Time // of the first record
	for r, err := range Records(ctx, v.store, h.Tenant, next) {
		if err != nil {
			return err
		}
		if r.Seq > h.Last {
			break
		}
		if since.IsZero() {
			since = r.Time
		}
		if v.c.Records++; v.o.Progress != nil && v.c.Records%1000 == 1 {
			v.o.Progress(h.Tenant, r.Seq, h.Last)
		}
		v.see(r)
		if r.Seq > next { // what follows the gap is looked at by itself
			v.c.add(&Fault{Wrong: Missing, Seq: next, Message: fmt.Sprintf("record %d is missing; the next one is %d", next, r.Seq)})
			prev, next = r.Prev, r.Seq
		}
		fault := v.record(r, next, prev)
		v.c.add(fault)
		if v.rows.full() {
			if err := v.compare(ctx); err != nil {
				return err
			}
		}
		if r.Seq == next {
			prev, next = r.Hash, next+1
		}
	}
	if err := v.compare(ctx); err != nil {
		return err
	}
	switch {
	case h.Last > 0 && next <= h.Last:
		v.c.add(&Fault{Wrong: Missing, Seq: next, Message: fmt.Sprintf("the last records, %d to %d, are missing", next, h.Last)})
	case h.Last > 0 && prev != h.LastHash:
		v.c.add(v.at(ctx, WrongHead, h.Last, "hash mismatch between the head and the last record: one of them was rewritten"))
	}
	if whole {
		v.c.add(v.beginning())
	}
	if err := v.behind(ctx); err != nil {
		return err
	}
	if v.o.Rows {
		if err := v.shown(ctx, begin, since, whole); err != nil {
			return err
		}
	}
	return v.unlessPruned(ctx)
}

// from is where to begin. A head that was kept says nothing of records that are not linked to it.
func (v *verifier) from() uint64 {
	from := v.o.From
	for _, k := range v.o.Against {
		if k.Tenant == v.head.Tenant && k.Last > 0 {
			from = min(from, k.Last)
		}
	}
	return from
}

// compare compares the executions that wait for it.
func (v *verifier) compare(ctx context.Context) error {
	found, err := v.rows.compare(ctx, v.store)
	for _, f := range found.faults {
		v.c.add(f)
	}
	v.c.LostSigns += found.signs
	v.lost += found.lost
	return err
}

// unlessPruned lets faults stand if their records were not removed, as is told by a record,
// while the chain was read.
func (v *verifier) unlessPruned(ctx context.Context) error {
	if v.c.Fault == nil {
		return nil
	}
	now, err := headOf(ctx, v.store, v.head.Tenant)
	if err != nil {
		return err
	}
	if now.First > v.head.First && slices.ContainsFunc(v.c.Faults, func(f Fault) bool { return f.Seq < now.First }) {
		return errPruned
	}
	return nil
}

// at names a record by its number.
func (v *verifier) at(ctx context.Context, w Wrong, seq uint64, message string) *Fault {
	page, err := v.store.Records(ctx, v.head.Tenant, seq, 1)
	if err != nil || len(page) == 0 || page[0].Seq != seq {
		return &Fault{Wrong: w, Seq: seq, Message: message}
	}
	return faultAt(w, &page[0], message)
}

func faultAt(w Wrong, r *Record, message string) *Fault {
	when := r.Time
	if y := when.Year(); y < 1 || y > 9999 {
		when = time.Time{} // which JSON can have
	}
	return &Fault{Wrong: w, Seq: r.Seq, Kind: r.Kind, ExecutionID: r.ExecutionID, Time: when, Message: message}
}

// record verifies one record, which is to have the number next and to follow prev.
func (v *verifier) record(r *Record, next uint64, prev string) *Fault {
	if r.Seq < next {
		return faultAt(Doubled, r, fmt.Sprintf("record %d exists twice", r.Seq))
	}
	if r.Tenant != v.head.Tenant || !linked(*r, r.Seq) {
		return v.misplaced(r)
	}
	if r.Prev != prev {
		return faultAt(Forged, r, fmt.Sprintf("broken chain: record %d or %d was rewritten", next-1, next))
	}
	if message := v.body(r); message != "" {
		return faultAt(Forged, r, message)
	}
	if v.o.Rows && (r.Kind == KindStarted || r.Kind == KindFinished) {
		v.rows.add(r)
	}
	return nil
}

// linked reports whether the hash of r is that of its fields, with the number seq.
func linked(r Record, seq uint64) bool {
	hash := r.Hash
	r.Seq = seq
	Link(r.Prev, &r)
	return r.Hash == hash
}

// misplaced looks whether a record that is not whole at its place was so near by.
func (v *verifier) misplaced(r *Record) *Fault {
	near := uint64(1000)
	if v.c.Found >= MaxFaults {
		near = 0 // it is only counted
	}
	for d := uint64(1); d <= near; d++ {
		if r.Seq > d && linked(*r, r.Seq-d) {
			return faultAt(Doubled, r, fmt.Sprintf("the record is a copy of record %d", r.Seq-d))
		}
		if linked(*r, r.Seq+d) {
			return faultAt(Reordered, r, fmt.Sprintf("the record was written with the number %d", r.Seq+d))
		}
	}
	return faultAt(Changed, r, "hash mismatch: the record was changed")
}

// body looks whether the body of a record says what the record says, and gives what is
// wrong.
func (v *verifier) body(r *Record) string {
	switch r.Kind {
	case KindPruned:
		var p Pruned
		if err := json.Unmarshal(r.Body, &p); err != nil || p.Next > r.Seq {
			return "the record of a removal cannot be read"
		}
		if !p.Time.Equal(r.Time) {
			return "its body is that of another record"
		}
		if v.pruned != nil && p.Next <= v.pruned.Next {
			return fmt.Sprintf("the records before %d are removed a second time; those before %d were already removed", p.Next, v.pruned.Next)
		}
		v.pruned = &p
		return ""
	case KindChange:
		var c Change
		if err := json.Unmarshal(r.Body, &c); err != nil {
			return "its body cannot be read"
		}
		if c.ID != r.ExecutionID || c.Tenant != r.Tenant || !c.Time.Equal(r.Time) {
			return "its body is that of another record"
		}
		return ""
	case KindStarted, KindFinished:
	default:
		return "unknown kind of record"
	}
	var b struct {
		ExecutionID string    `json:"execution_id"`
		Time        time.Time `json:"time"`
	}
	if err := json.Unmarshal(r.Body, &b); err != nil {
		return "its body cannot be read"
	}
	if b.ExecutionID != r.ExecutionID || !b.Time.Equal(r.Time) {
		return "its body is that of another record"
	}
	return ""
}

// beginning verifies that what came before the oldest record was removed on record.
func (v *verifier) beginning() *Fault {
	h, p := v.head, v.pruned
	switch {
	case h.First <= 1 && h.Last > 0 && h.Prev != Origin:
		return &Fault{Wrong: WrongHead, Seq: h.First, Message: "the head names a predecessor of the first record"}
	case h.First <= 1 && p != nil && p.Next > 1:
		return &Fault{Wrong: Forged, Seq: p.Next, Message: "a record says that all earlier records were removed, but they exist"}
	case h.First > 1 && p == nil:
		return &Fault{Wrong: Missing, Seq: h.First - 1, Message: fmt.Sprintf("the records before %d are missing and no record says that they were removed", h.First)}
	case h.First > 1 && (p.Next != h.First || p.Hash != h.Prev):
		return &Fault{Wrong: Missing, Seq: h.First - 1, Message: fmt.Sprintf("the records before %d are missing; a record says that only those before %d were removed", h.First, p.Next)}
	}
	return nil
}

// behind verifies that nothing stands behind the end that the head names, and then that
// the heads which were kept elsewhere are those of this chain.
func (v *verifier) behind(ctx context.Context) error {
	page, err := v.store.Records(ctx, v.head.Tenant, v.head.Last+1, 1)
	if err != nil {
		return err
	}
	if len(page) > 0 {
		now, err := headOf(ctx, v.store, v.head.Tenant) // it may just have been written
		if err != nil {
			return err
		}
		if now.Last < page[0].Seq {
			v.c.add(faultAt(WrongHead, &page[0], fmt.Sprintf("there are records after %d, the last one according to the head", now.Last)))
		}
	}
	for _, k := range v.o.Against {
		if k.Tenant != v.head.Tenant || k.Last == 0 {
			continue
		}
		fault, err := v.kept(ctx, k)
		if err != nil {
			return err
		}
		v.c.add(fault)
	}
	return nil
}

// kept compares the chain with a head that was kept elsewhere.
func (v *verifier) kept(ctx context.Context, k Head) (*Fault, error) {
	h := v.head
	switch {
	case k.Last > h.Last:
		return &Fault{Wrong: Missing, Seq: h.Last + 1, Message: fmt.Sprintf("the chain ends with %d; the saved head has %d", h.Last, k.Last)}, nil
	case k.Last == h.First-1 && k.LastHash != h.Prev:
		return &Fault{Wrong: Forged, Seq: k.Last, Message: "the last removed record does not match the saved head"}, nil
	case k.Last < h.First && v.early(k):
		return &Fault{
			Wrong: NotThere, Seq: k.Last, Time: k.Time,
			Message: fmt.Sprintf("the record of the saved head was removed before the retention of %d days", v.o.Retention/(24*time.Hour)),
		}, nil
	case k.Last < h.First-1: // who writes the chain anew can write any record of a removal too
		return &Fault{
			Wrong: NotThere, Seq: k.Last, Time: k.Time,
			Message: "cannot compare the saved head: its record was removed; use a newer head",
		}, nil
	case k.Last == h.First-1:
		return nil, nil
	}
	page, err := v.store.Records(ctx, h.Tenant, k.Last, 1)
	if err != nil {
		return nil, err
	}
	if len(page) == 0 || page[0].Seq != k.Last {
		return &Fault{Wrong: Missing, Seq: k.Last, Message: "the record of the saved head is missing"}, nil
	}
	if page[0].Hash != k.LastHash {
		return faultAt(Forged, &page[0], "the chain was rewritten: the saved head has another hash for this record"), nil
	}
	return nil, nil
}

// early reports whether the record of k was removed before the retention allows it. A record
// of a removal does not make itself late by a time that is to come.
func (v *verifier) early(k Head) bool {
	removed := time.Now()
	if p := v.pruned; p != nil && p.Time.Before(removed) {
		removed = p.Time
	}
	return !k.Time.IsZero() && removed.Sub(k.Time) < v.o.Retention-apart
}
