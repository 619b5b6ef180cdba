package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"openskill/sdk/skill"
)

// VerifyOptions choose what is verified. Their zero value verifies every chain whole.
type VerifyOptions struct {
	Tenant  string       // one chain; "": all
	From    uint64       // sequence number to begin at, whose record before is believed; 0: the oldest
	Against []Head       // heads that were kept elsewhere: their records must still be there as they were
	Rows    bool         // compare executions, as queries show them, with their records too; what queries show that no record tells of is not looked for
	Each    func(*Chain) // is told each chain as soon as it is verified; nil: nobody
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
	First   uint64 `json:"first"`           // sequence numbers of the oldest record and of the last
	Last    uint64 `json:"last"`            // 0: the chain is empty
	Hash    string `json:"hash,omitempty"`  // of the last record
	Records uint64 `json:"records"`         // that were verified
	Fault   *Fault `json:"fault,omitempty"` // the first thing that is wrong; nil: the chain is whole
}

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

// Verify reads chains from their oldest record to their last and finds the first record of
// each that was changed, removed, moved, doubled or forged after it was written. It keeps
// no more than a page of records in memory. Records may be written and removed meanwhile.
// An error says that the store could not be read; what is wrong with a chain is none.
func Verify(ctx context.Context, s Store, o VerifyOptions) (*Report, error) {
	heads, err := s.Tenants(ctx)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	r := &Report{}
	tell := func(c *Chain) {
		r.Chains = append(r.Chains, *c)
		if o.Each != nil {
			o.Each(c)
		}
	}
	for _, h := range heads {
		if o.Tenant != "" && h.Tenant != o.Tenant {
			continue
		}
		there[h.Tenant] = true
		c, err := verifyChain(ctx, s, h, &o)
		if err != nil {
			return r, err
		}
		tell(c)
	}
	// A tenant that is known from elsewhere, and has no head.
	for _, k := range o.Against {
		if !there[k.Tenant] && k.Last > 0 && (o.Tenant == "" || k.Tenant == o.Tenant) {
			there[k.Tenant] = true
			tell(&Chain{Tenant: k.Tenant, Fault: &Fault{
				Wrong: Missing, Seq: k.Last, Message: "the whole chain is gone, of which the head was kept",
			}})
		}
	}
	if o.Tenant != "" && !there[o.Tenant] {
		page, err := s.Records(ctx, o.Tenant, 1, 1)
		if err != nil {
			return r, err
		}
		c := &Chain{Tenant: o.Tenant}
		if len(page) > 0 {
			c.Fault = faultAt(WrongHead, &page[0], "there are records of this tenant, and no head")
		}
		tell(c)
	}
	return r, nil
}

// errPruned says that records were removed, on record, while they were read.
var errPruned = errors.New("records were removed meanwhile")

func verifyChain(ctx context.Context, s Store, h Head, o *VerifyOptions) (*Chain, error) {
	for range 100 {
		v := verifier{store: s, o: o, head: h, c: Chain{Tenant: h.Tenant, First: h.First, Last: h.Last, Hash: h.LastHash}}
		err := v.verify(ctx)
		if err == nil {
			return &v.c, nil
		}
		if !errors.Is(err, errPruned) {
			return nil, err
		}
		if h, err = headOf(ctx, s, h.Tenant); err != nil {
			return nil, err
		}
	}
	return nil, &skill.Error{
		Op: "audit.Verify", Code: skill.Conflict, Subject: h.Tenant,
		Message: "records are removed faster than they are verified; verify again in a while",
	}
}

// headOf reads one head; a zero one where there is none.
func headOf(ctx context.Context, s Store, tenant string) (Head, error) {
	heads, err := s.Tenants(ctx)
	for _, h := range heads {
		if h.Tenant == tenant {
			return h, err
		}
	}
	return Head{Tenant: tenant}, err
}

// verifier reads one chain.
type verifier struct {
	store  Store
	o      *VerifyOptions
	head   Head
	c      Chain
	pruned *Pruned // the last record of a removal
	rows   rows    // executions that wait to be compared
}

func (v *verifier) verify(ctx context.Context) error {
	h := v.head
	prev, next := h.Prev, h.First
	if v.o.From > h.First && h.Last > 0 {
		from := min(v.o.From, h.Last)
		page, err := v.store.Records(ctx, h.Tenant, from-1, 1)
		if err != nil {
			return err
		}
		if len(page) > 0 && page[0].Seq == from-1 {
			prev, next = page[0].Hash, from
		}
	}
	whole := next == h.First
	for r, err := range Records(ctx, v.store, h.Tenant, next) {
		if err != nil {
			return err
		}
		if r.Seq > h.Last {
			break
		}
		v.c.Fault = v.record(r, next, prev)
		if v.c.Fault != nil || v.rows.full() {
			// Something may be wrong with an execution before it.
			fault, err := v.rows.compare(ctx, v.store)
			if err != nil {
				return err
			}
			if fault != nil {
				v.c.Fault = fault
			}
		}
		if v.c.Fault != nil {
			return v.unlessPruned(ctx, v.c.Fault.Seq)
		}
		v.c.Records++
		prev, next = r.Hash, next+1
	}
	if fault, err := v.rows.compare(ctx, v.store); err != nil {
		return err
	} else if fault != nil {
		v.c.Fault = fault
		return v.unlessPruned(ctx, fault.Seq)
	}
	switch {
	case h.Last > 0 && next <= h.Last:
		v.c.Fault = &Fault{Wrong: Missing, Seq: next, Message: fmt.Sprintf("records %d to %d, the last ones, are not there", next, h.Last)}
		return v.unlessPruned(ctx, next)
	case h.Last > 0 && prev != h.LastHash:
		v.c.Fault = v.at(ctx, WrongHead, h.Last, "the head names another hash of the last record: the record or the head was written anew")
		return nil
	}
	if whole {
		if v.c.Fault = v.beginning(); v.c.Fault != nil {
			return nil
		}
	}
	return v.behind(ctx)
}

// unlessPruned lets a fault at a record stand if that one was not removed, as is told by a
// record, while the chain was read.
func (v *verifier) unlessPruned(ctx context.Context, seq uint64) error {
	now, err := headOf(ctx, v.store, v.head.Tenant)
	if err != nil {
		return err
	}
	if now.First > v.head.First && now.First > seq {
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
	return &Fault{Wrong: w, Seq: r.Seq, Kind: r.Kind, ExecutionID: r.ExecutionID, Time: r.Time, Message: message}
}

// record verifies one record, which is to have the number next and to follow prev.
func (v *verifier) record(r *Record, next uint64, prev string) *Fault {
	switch {
	case r.Seq > next:
		return &Fault{Wrong: Missing, Seq: next, Message: fmt.Sprintf("no record has the number %d; the next one there is %d", next, r.Seq)}
	case r.Seq < next:
		return faultAt(Doubled, r, fmt.Sprintf("the number %d is there twice", r.Seq))
	}
	if r.Tenant != v.head.Tenant || !linked(*r, r.Seq) {
		return v.misplaced(r)
	}
	if r.Prev != prev {
		return faultAt(Forged, r, fmt.Sprintf("the record does not follow the one before it: one of %d and %d was written anew", next-1, next))
	}
	if message := v.body(r); message != "" {
		return faultAt(Forged, r, message)
	}
	if v.o.Rows && r.Kind != KindPruned {
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
	const near = 1000
	for d := uint64(1); d <= near; d++ {
		if r.Seq > d && linked(*r, r.Seq-d) {
			return faultAt(Doubled, r, fmt.Sprintf("the record was written with the number %d, and stands here again", r.Seq-d))
		}
		if linked(*r, r.Seq+d) {
			return faultAt(Reordered, r, fmt.Sprintf("the record was written with the number %d", r.Seq+d))
		}
	}
	return faultAt(Changed, r, "the record is not what was written: its hash is another one")
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
		v.pruned = &p
		return ""
	case KindStarted, KindFinished:
	default:
		return "there is no such kind of record"
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
		return &Fault{Wrong: WrongHead, Seq: h.First, Message: "the head names something before the first record"}
	case h.First <= 1 && p != nil && p.Next > 1:
		return &Fault{Wrong: Forged, Seq: p.Next, Message: "a record says that all before this one were removed, and they are there"}
	case h.First > 1 && p == nil:
		return &Fault{Wrong: Missing, Seq: h.First - 1, Message: fmt.Sprintf("the records before %d are not there, and no record says that they were removed", h.First)}
	case h.First > 1 && (p.Next != h.First || p.Hash != h.Prev):
		return &Fault{Wrong: Missing, Seq: h.First - 1, Message: fmt.Sprintf("the records before %d are not there; a record says that those before %d were removed", h.First, p.Next)}
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
			v.c.Fault = faultAt(WrongHead, &page[0], fmt.Sprintf("there are records behind %d, which the head says to be the last", now.Last))
			return nil
		}
	}
	for _, k := range v.o.Against {
		if k.Tenant != v.head.Tenant || k.Last == 0 {
			continue
		}
		if v.c.Fault, err = v.kept(ctx, k); err != nil || v.c.Fault != nil {
			return err
		}
	}
	return nil
}

// kept compares the chain with a head that was kept elsewhere.
func (v *verifier) kept(ctx context.Context, k Head) (*Fault, error) {
	h := v.head
	switch {
	case k.Last > h.Last:
		return &Fault{Wrong: Missing, Seq: h.Last + 1, Message: fmt.Sprintf("the chain ends with %d; the head that was kept has %d", h.Last, k.Last)}, nil
	case k.Last < h.First-1:
		return nil, nil //nolint:nilnil // it was removed on record, and cannot be compared any more
	case k.Last == h.First-1:
		if k.LastHash != h.Prev {
			return &Fault{Wrong: Forged, Seq: k.Last, Message: "the record that was removed last is not that of the head that was kept"}, nil
		}
		return nil, nil //nolint:nilnil // no fault
	}
	page, err := v.store.Records(ctx, h.Tenant, k.Last, 1)
	if err != nil {
		return nil, err
	}
	if len(page) == 0 || page[0].Seq != k.Last {
		return nil, errPruned
	}
	if page[0].Hash != k.LastHash {
		return faultAt(Forged, &page[0], "the chain was written anew: the head that was kept has another hash of this record"), nil
	}
	return nil, nil //nolint:nilnil // no fault
}
