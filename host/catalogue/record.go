package catalogue

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"openskill/sdk/skill"
)

const (
	// maxHistory is how many steps back a skill can be rolled.
	maxHistory = 50
	// maxRemembered is how many versions one skill can have over all time, and maxGoneSkills
	// how many skills of a tenant are remembered of which nothing else is left. Beyond them
	// nothing new is taken: what is known is never forgotten, so that a name is not used again.
	maxRemembered = 2000
	maxGoneSkills = 5000
)

// key names one skill of one tenant.
type key struct {
	tenant string
	id     skill.ID
}

// record is what the database has of one skill. Once in Store.skills it is never changed,
// only replaced.
type record struct {
	key      key
	current  string     // version that calls without a version get; "" for none
	history  []string   // what was current before, the last one last
	versions []*version // in the order of their upload
	revision int64
}

// version is one row of upload_versions.
type version struct {
	version    string
	digest     string
	bytes      int64 // of the disk
	position   int64 // in the order of uploads
	uploadedBy string
	uploadedAt time.Time
	enabled    bool
	wasEnabled bool  // at any time
	approved   *Mark // for all tenants
	quarantine *Mark
	deleted    time.Time // zero: it is there
	gone       bool      // the files too: what the version was is remembered
	packages   locked

	absent bool // the files, or those of its packages, are not on this host yet
}

// Mark is who decided, when, and why.
type Mark struct {
	By     string // id of the principal; "host" for the host itself
	At     time.Time
	Reason string
}

// byHost is who the host itself is in a Mark.
const byHost = "host"

func (v *version) state() skill.State {
	switch {
	case !v.deleted.IsZero():
		return skill.StateDeleted
	case v.quarantine != nil:
		return skill.StateQuarantined
	case v.enabled:
		return skill.StateEnabled
	}
	return skill.StateDisabled
}

func (v *version) public(id skill.ID) skill.VersionState {
	p := skill.VersionState{ID: id, Version: v.version, Digest: v.digest, State: v.state(), Shared: v.approved != nil}
	if v.quarantine != nil {
		p.Reason = v.quarantine.Reason
	}
	return p
}

// find returns the version of a name that was not deleted, or nil.
func (r *record) find(name string) *version {
	for _, v := range r.versions {
		if v.version == name && v.deleted.IsZero() {
			return v
		}
	}
	return nil
}

// live returns the versions that were not deleted.
func (r *record) live() (list []*version) {
	for _, v := range r.versions {
		if v.deleted.IsZero() {
			list = append(list, v)
		}
	}
	return list
}

// kept returns the versions whose files are kept, deleted or not.
func (r *record) kept() (list []*version) {
	for _, v := range r.versions {
		if !v.gone {
			list = append(list, v)
		}
	}
	return list
}

func (r *record) names() (list []string) {
	for _, v := range r.live() {
		list = append(list, v.version)
	}
	return list
}

// clone is a copy that may be changed.
func (r *record) clone() *record {
	c := *r
	c.history = slices.Clone(r.history)
	c.versions = make([]*version, len(r.versions))
	for i, v := range r.versions {
		w := *v
		c.versions[i] = &w
	}
	return &c
}

// visible returns the versions of a skill that a caller of a tenant may know of: its own,
// and those of others that are approved. Some may be on their way to this host.
func (r *record) visible(tenant string) (list []*version) {
	for _, v := range r.live() {
		if r.key.tenant == tenant || v.approved != nil {
			list = append(list, v)
		}
	}
	return list
}

// shown returns the visible versions whose files this host has.
func (r *record) shown(tenant string) []*version {
	return slices.DeleteFunc(r.visible(tenant), func(v *version) bool { return v.absent })
}

// choose returns the visible version that a name means to a caller, and whether it may be
// called where the name is "". A version that is on its way is chosen too: in its place
// another one would run, or its skill would seem disabled.
func (r *record) choose(tenant, name string) (v *version, may bool) {
	visible := r.visible(tenant)
	if name != "" {
		for _, v := range visible {
			if v.version == name {
				return v, true
			}
		}
		return nil, false
	}
	for _, v := range visible {
		if v.version == r.current {
			return v, true
		}
	}
	if r.key.tenant != tenant { // the current one is not approved: the newest that is
		for _, v := range slices.Backward(visible) {
			if v.enabled {
				return v, true
			}
		}
	}
	if len(visible) == 0 {
		return nil, false
	}
	return visible[len(visible)-1], false
}

func onItsWay(v *version, id skill.ID) error {
	return &skill.Error{
		Op: "catalogue.Get", Code: skill.NotFound, Subject: string(id),
		Message: fmt.Sprintf("version %s of %s is still being fetched; retry after 1 s", v.version, id),
	}
}

func notFound(id skill.ID) error {
	return &skill.Error{
		Op: "catalogue.Get", Code: skill.NotFound, Subject: skill.CleanText(string(id), 64),
		Message: "skill not found; GET /skills lists all",
	}
}

func noVersion(id skill.ID, list []string) error {
	return &skill.Error{
		Op: "catalogue.Get", Code: skill.NotFound, Subject: string(id),
		Message: skill.CleanText(fmt.Sprintf("no such version of %s; available: %s", id, strings.Join(list, ", ")), skill.MaxMessage),
	}
}

// folderName is the name of the folder of a version's files: their digest.
func folderName(digest string) string {
	if b, err := hex.DecodeString(strings.TrimPrefix(digest, "sha256:")); err != nil || len(b) != 32 {
		return "damaged" // no row has it; nothing is ever put there
	}
	return strings.TrimPrefix(digest, "sha256:")
}

// before is the version that was current before the current one, and what is left of the history
// without it. One that was deleted or quarantined since is passed over.
func (r *record) before() (*version, []string) {
	for i := len(r.history) - 1; i >= 0; i-- {
		if v := r.find(r.history[i]); v != nil && r.history[i] != r.current && v.quarantine == nil {
			return v, r.history[:i]
		}
	}
	return nil, nil
}

// toEnable is the version that :enable means where it names none: the newest one
// that was never enabled before; else the current one; else the newest.
func (r *record) toEnable() *version {
	live := r.live()
	newest := live[len(live)-1]
	if current := r.find(r.current); current != nil && newest.wasEnabled {
		return current
	}
	return newest
}

// current is the version that calls without one mean; the newest where there is none.
func (r *record) currentOr() *version {
	if v := r.find(r.current); v != nil {
		return v
	}
	live := r.live()
	return live[len(live)-1]
}

func (r *record) makeCurrent(name string) {
	if r.current == name {
		return
	}
	if r.current != "" {
		r.history = append(r.history, r.current)
		r.history = r.history[max(len(r.history)-maxHistory, 0):]
	}
	r.current = name
}
