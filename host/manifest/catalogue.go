package manifest

import (
	"fmt"
	"slices"

	"openskill/sdk/skill"
)

// The sizes of a page of [Registry.List].
const (
	DefaultPage = 50
	MaxPage     = 200
)

// Get finds a skill; version "" is the one there is. The error is an *skill.Error
// with the code NOT_FOUND. A disabled skill is found: its Descriptor says so.
func (r *Registry) Get(id skill.ID, version string) (*Skill, error) {
	s, ok := r.skills[id]
	if !ok {
		return nil, &skill.Error{
			Op: "registry.Get", Code: skill.NotFound, Subject: skill.CleanText(string(id), 64),
			Message: "skill not found; GET /skills lists all",
		}
	}
	if version != "" && version != s.Descriptor.Version {
		return nil, &skill.Error{
			Op: "registry.Get", Code: skill.NotFound, Subject: string(id),
			Message: fmt.Sprintf("no such version of %s; available: %s", id, s.Descriptor.Version),
		}
	}
	return s, nil
}

// IDs gives the ids of all skills, in order.
func (r *Registry) IDs() []skill.ID { return slices.Clone(r.order) }

// Has reports whether there is a skill of this id.
func (r *Registry) Has(id skill.ID) bool { return r.skills[id] != nil }

// Shared is a registry as the door asks it: its skills are the operator's, and so
// every tenant's.
type Shared struct{ *Registry }

// Get is [Registry.Get] for a caller of any tenant.
func (s Shared) Get(_ string, id skill.ID, version string) (*Skill, error) {
	return s.Registry.Get(id, version)
}

// List gives a page of the catalogue in the order of ids. cursor is "" for the
// first page, or what the page before gave as next; next is "" after the last.
// limit 0 is DefaultPage, and MaxPage is the most.
func (r *Registry) List(cursor string, limit int) (page []skill.Descriptor, next string, err error) {
	if limit < 0 || limit > MaxPage {
		return nil, "", &skill.Error{
			Op: "registry.List", Code: skill.InvalidArgument, Subject: "limit",
			Message: fmt.Sprintf("limit must be 1 to %d", MaxPage),
		}
	}
	if limit == 0 {
		limit = DefaultPage
	}
	start := 0
	if cursor != "" {
		id, err := skill.ParseID(cursor)
		if err != nil {
			return nil, "", &skill.Error{
				Op: "registry.List", Code: skill.InvalidArgument, Subject: "cursor",
				Message: "cursor must be the next value of the previous page",
			}
		}
		i, found := slices.BinarySearch(r.order, id)
		start = i
		if found {
			start++
		}
	}
	end := min(start+limit, len(r.order))
	page = make([]skill.Descriptor, 0, end-start)
	for _, id := range r.order[start:end] {
		page = append(page, r.skills[id].Descriptor)
	}
	if end < len(r.order) {
		next = string(r.order[end-1])
	}
	return page, next, nil
}

// Versions gives every version of a skill; this release keeps one of each.
func (r *Registry) Versions(id skill.ID) ([]skill.Descriptor, error) {
	s, err := r.Get(id, "")
	if err != nil {
		return nil, err
	}
	return []skill.Descriptor{s.Descriptor}, nil
}
