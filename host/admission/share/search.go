package share

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"openskill/sdk/skill"
)

// The bounds of a search.
const (
	maxRepositories = 2000
	maxFound        = 200
	atOnce          = 4
)

// Found is a skill in a registry, as its artifact describes itself: nothing is verified.
type Found struct {
	ID          skill.ID   `json:"id"`
	Reference   string     `json:"reference"` // of the newest version
	Version     string     `json:"version"`   // the newest
	Versions    []string   `json:"versions"`  // the lowest first
	Description string     `json:"description"`
	Runner      skill.Kind `json:"runner"`
	Signed      bool       `json:"signed"` // there is a signature; it is not verified
}

// Search looks for skills in a registry by the list of its repositories: those below
// prefix that have all words in id, description or the repository's name. more says that
// there are perhaps others, which were too many to look at. The error is an *skill.Error.
func (c *Carrier) Search(ctx context.Context, r *Remote, host, prefix string, words []string) (found []Found, more bool, err error) {
	names, more, err := r.catalog(ctx, host, strings.Trim(prefix, "/"))
	if err != nil {
		return nil, false, err
	}
	all := make([]*Found, len(names))
	errs := make([]error, len(names))
	var group sync.WaitGroup
	for start := range min(atOnce, len(names)) {
		group.Go(func() {
			for i := start; i < len(names) && ctx.Err() == nil; i += atOnce {
				all[i], errs[i] = c.look(ctx, r, host+"/"+names[i])
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return nil, false, told(ctx, host, ctx.Err())
	}
	found = []Found{}
	for i, f := range all {
		switch {
		case errs[i] != nil:
			more = true // one repository that cannot be read does not hide the others
		case f == nil || !f.has(names[i], words):
		case len(found) == maxFound:
			more = true
		default:
			found = append(found, *f)
		}
	}
	return found, more, nil
}

func (f *Found) has(name string, words []string) bool {
	text := strings.ToLower(name + " " + string(f.ID) + " " + f.Description)
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, strings.ToLower(w)) })
}

// catalog lists the repositories of a registry below a prefix, in order.
func (r *Remote) catalog(ctx context.Context, host, prefix string) (names []string, more bool, err error) {
	if _, err := ParseReference(host + "/x"); err != nil {
		return nil, false, invalid("share.Search", "invalid registry %q: use HOST[:PORT]", skill.CleanText(host, 120))
	}
	client, err := r.authorized(host)
	if err != nil {
		return nil, false, err
	}
	reg, err := remote.NewRegistry(host)
	if err != nil {
		return nil, false, invalid("share.Search", "invalid registry %q: use HOST[:PORT]", skill.CleanText(host, 120))
	}
	reg.Client, reg.PlainHTTP, reg.MaxMetadataBytes, reg.RepositoryListPageSize = client, r.plain(host), maxMetadata, 1000
	pages, seen := 0, 0
	err = reg.Repositories(ctx, "", func(page []string) error {
		for _, name := range page {
			if prefix == "" || name == prefix || strings.HasPrefix(name, prefix+"/") {
				names = append(names, name)
			}
		}
		seen += len(page)
		if pages++; pages == maxPages || seen >= maxRepositories {
			return errEnough
		}
		return nil
	})
	switch answer, ok := errors.AsType[*errcode.ErrorResponse](err); {
	case errors.Is(err, errEnough):
		more = true
	case ok && (answer.StatusCode == 404 || answer.StatusCode == 405 || answer.StatusCode == 501):
		return nil, false, &skill.Error{Op: "share.Search", Code: skill.NotFound, Err: err, Message: skill.CleanText(
			"the registry "+host+" has no catalogue; name the skill: openskill skill pull "+host+"/REPOSITORY", skill.MaxMessage)}
	case err != nil:
		return nil, false, told(ctx, host, err)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), maxRepositories)], more, nil
}

// look reads the newest version of a repository; nil where it holds no skills.
func (c *Carrier) look(ctx context.Context, r *Remote, name string) (*Found, error) {
	ref, err := ParseReference(name)
	if err != nil {
		return nil, err
	}
	repo, err := r.repository(ref)
	if err != nil {
		return nil, err
	}
	all, err := tags(ctx, repo)
	if err != nil {
		return nil, err
	}
	list := versions(all)
	if len(list) == 0 {
		return nil, nil
	}
	at := ref.At(Tag(newest(list)))
	desc, err := repo.Resolve(ctx, at.Version())
	if err != nil {
		return nil, told(ctx, ref.Host(), err)
	}
	p, err := c.fetchManifest(ctx, &source{from: repo, host: ref.Host()}, desc)
	switch {
	case skill.CodeOf(err) == skill.ArchiveRejected:
		return nil, nil // something else than a skill
	case err != nil:
		return nil, err
	}
	return &Found{
		ID: p.ID, Reference: at.String(), Version: newest(list), Versions: list,
		Description: p.Description, Runner: p.Runner, Signed: p.Signature != nil,
	}, nil
}
