package share

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"oras.land/oras-go/v2/registry/remote/errcode"

	"openskill/host/admission"
	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// AddOptions say which skills of an origin are added, and where to.
type AddOptions struct {
	PullOptions
	Skills []string // names; nil: the only one
	All    bool     // all skills of the origin
}

// offer is a skill of an origin.
type offer struct {
	name  string
	from  Origin
	fetch func(w io.Writer) error // writes an archive
}

// Add installs skills of an origin into the folder o.Dir. If one is refused, none is installed. The error is an
// *skill.Error.
func (c *Carrier) Add(ctx context.Context, r *Remote, from Origin, o AddOptions) ([]*Pulled, error) {
	var done []*Pulled
	err := c.within(ctx, o.Dir, func(in *install) (err error) {
		done, err = c.add(ctx, r, from, o, in)
		return err
	})
	return done, err
}

func (c *Carrier) add(ctx context.Context, r *Remote, from Origin, o AddOptions, in *install) ([]*Pulled, error) {
	offers, err := c.offers(ctx, r, from, in.staging)
	if err == nil {
		offers, err = chosen(offers, from, o)
	}
	if err != nil {
		return nil, err
	}
	ready := make([]func() (*Pulled, error), len(offers))
	seen := map[skill.ID]bool{}
	for i, one := range offers {
		var id skill.ID
		if ready[i], id, err = c.prepareOffer(ctx, one, o.PullOptions, in); err != nil {
			return nil, err
		}
		if seen[id] {
			return nil, conflict("share.Add", "%s has two skills named %s; name the folder of one", from, id)
		}
		seen[id] = true
	}
	return placeAll(ready)
}

// placeAll installs what was prepared. Skills before one that fails stay installed.
func placeAll(ready []func() (*Pulled, error)) ([]*Pulled, error) {
	done := make([]*Pulled, 0, len(ready))
	for _, place := range ready {
		one, err := place()
		if err != nil {
			return done, err
		}
		done = append(done, one)
	}
	return done, nil
}

// chosen returns the offers that o names.
func chosen(all []offer, from Origin, o AddOptions) ([]offer, error) {
	names := o.Skills
	if from.skill != "" {
		names = append(slices.Clone(names), from.skill)
	}
	there := make([]string, len(all))
	for i := range all {
		there[i] = all[i].name
	}
	switch {
	case len(all) == 0:
		return nil, &skill.Error{Op: "share.Add", Code: skill.NotFound, Message: skill.CleanText(from.String()+" has no skill: no folder with a SKILL.md", skill.MaxMessage)}
	case o.All || len(names) == 0 && len(all) == 1:
		return all, nil
	case len(names) == 0:
		return nil, invalid("share.Add", "%s has %d skills; choose with --skill NAME, or --all: %s", from, len(all), strings.Join(there, ", "))
	}
	var some []offer
	for _, name := range names {
		i := slices.Index(there, name)
		if i < 0 {
			return nil, &skill.Error{Op: "share.Add", Code: skill.NotFound, Message: skill.CleanText(fmt.Sprintf("%s has no skill %q, but %s", from, name, strings.Join(there, ", ")), skill.MaxMessage)}
		}
		some = append(some, all[i])
	}
	return some, nil
}

// prepareOffer does everything for one skill but install it, which place does.
func (c *Carrier) prepareOffer(ctx context.Context, one offer, o PullOptions, in *install) (place func() (*Pulled, error), id skill.ID, err error) {
	f, err := os.CreateTemp(in.staging, "archive-")
	if err != nil {
		return nil, "", hostFault(err)
	}
	defer f.Close()
	sum := sha256.New()
	if err := one.fetch(io.MultiWriter(f, sum)); err != nil {
		return nil, "", err
	}
	a, err := c.o.Admission.Admit(ctx, admission.Source{Archive: f, Trust: skill.Community}, in.staging)
	if err != nil {
		return nil, "", err
	}
	d := &a.Skill.Descriptor
	if o.Policy == nil {
		o.Policy = &Policy{} // which accepts nothing
	}
	by, err := o.Policy.Decide(one.from.place(), Statement{ID: d.ID, Version: d.Version, Digest: a.Digest}, nil)
	if err != nil {
		return nil, "", err
	}
	entry := &manifest.LockEntry{
		Version: d.Version, Digest: a.Digest, Reference: one.from.String(), Manifest: "sha256:" + hex.EncodeToString(sum.Sum(nil)), Trust: by.Trust,
	}
	old := in.lock.Skills[d.ID]
	if in.restoring && (old == nil || old.Digest != a.Digest) { // a server may send another skill than before
		return nil, "", conflict("share.Restore", "%s has other files now than %s says: it is %s %s", one.from, manifest.LockName, d.ID, d.Version)
	}
	unordered := old != nil && strings.HasPrefix(old.Version, unversioned) && strings.HasPrefix(d.Version, unversioned)
	if err := in.may(d.ID, entry, o.Downgrade || unordered); err != nil {
		return nil, "", err
	}
	if in.intact(d.ID, a.Digest) {
		return func() (*Pulled, error) { return in.keep(d.ID, entry, nil) }, d.ID, nil
	}
	return func() (*Pulled, error) { return in.place(d.ID, a.Folder, entry, nil) }, d.ID, nil
}

// offers lists the skills of an origin.
func (c *Carrier) offers(ctx context.Context, r *Remote, from Origin, staging string) ([]offer, error) {
	if from.repository != "" {
		return c.ofRepository(ctx, r, from, staging)
	}
	var b bytes.Buffer
	if _, err := c.download(ctx, r, from.server, from.server+indexPath, maxMetadata, &b); err != nil {
		return nil, err
	}
	var index struct {
		Skills []struct{ Name, Type, URL, Digest string }
	}
	if err := json.Unmarshal(b.Bytes(), &index); err != nil {
		return nil, malformed("the list of skills of %s is not JSON: %v", from.server, err)
	}
	if len(index.Skills) > maxBundled {
		return nil, tooManySkills(from)
	}
	var all []offer
	for _, s := range index.Skills {
		base, _ := url.Parse(from.server + indexPath) // it was read before
		at, err := base.Parse(s.URL)
		if err != nil || !skillName.MatchString(s.Name) || !sha256Digest.MatchString(s.Digest) || s.Type != "archive" && s.Type != "skill-md" {
			return nil, malformed("the list of skills of %s has an entry without a valid name, type, url and digest: %q", from.server, skill.CleanText(s.Name, 80))
		}
		named := from
		named.skill = s.Name
		all = append(all, offer{name: s.Name, from: named, fetch: func(w io.Writer) error {
			return c.offered(ctx, r, from.server, at.String(), s.Digest, s.Type == "skill-md", w)
		}})
	}
	return all, nil
}

func tooManySkills(from Origin) error {
	return &skill.Error{Op: "share.Add", Code: skill.PayloadTooLarge, Message: skill.CleanText(fmt.Sprintf("%s has more than %d skills; name a folder with fewer", from, maxBundled), skill.MaxMessage)}
}

// offered fetches what a host lists, whose digest is compared, and writes it as an archive.
func (c *Carrier) offered(ctx context.Context, r *Remote, home, address, digest string, bare bool, w io.Writer) error {
	var b bytes.Buffer
	sum, err := c.download(ctx, r, home, address, c.o.MaxArchive, &b)
	if err != nil {
		return err
	}
	if sum != digest {
		return malformed("digest mismatch: %s sent other data than it lists", home)
	}
	if bare {
		return packText(w, b.Bytes())
	}
	_, err = w.Write(b.Bytes())
	return err
}

// download fetches no more than most bytes, and returns their digest.
func (c *Carrier) download(ctx context.Context, r *Remote, home, address string, most int64, w io.Writer) (digest string, err error) {
	u, err := url.Parse(home)
	if err != nil || u.Host == "" {
		return "", invalid("share.Add", "invalid address of a server: %q", skill.CleanText(home, 120))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", invalid("share.Add", "invalid address of a skill on %s", u.Host)
	}
	req.Header = r.headers.Clone()
	client := http.Client{Transport: guard{r, u.Host}, CheckRedirect: redirect}
	res, err := client.Do(req)
	if err != nil {
		return "", told(ctx, u.Host, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", answered(u.Host, &errcode.ErrorResponse{StatusCode: res.StatusCode}, nil)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(c.o.Watch(u.Host, res.ContentLength, &stoppable{ctx, res.Body}), most+1))
	switch {
	case err != nil && errors.Is(err, io.ErrUnexpectedEOF):
		return "", unsound(ctx, u.Host, err)
	case err != nil:
		return "", told(ctx, u.Host, err)
	case n > most:
		return "", &skill.Error{Op: "share.Add", Code: skill.PayloadTooLarge, Message: skill.CleanText(fmt.Sprintf("%s sends more than %d bytes", u.Host, most), skill.MaxMessage)}
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}
