package app

import (
	"context"
	"errors"
	"fmt"
	"os"

	"openskill/host/admission"
	"openskill/host/admission/share"
	"openskill/host/app/config"
	"openskill/sdk/skill"
)

// pulls gets uploads from registries, those that the operator names, by the operator's
// trust policy. It has no credentials: what the operator may read is not what every
// tenant may.
type pulls struct {
	carrier *share.Carrier
	remote  *share.Remote
	accepts *share.Policy
}

// openPulls gives nil where nothing may be pulled.
func openPulls(s *config.Settings, admission *admission.Admission) (*pulls, error) {
	hosts := s.PullsFrom()
	if len(hosts) == 0 {
		return nil, nil
	}
	b, err := os.ReadFile(s.TrustPolicy)
	if err != nil {
		return nil, fmt.Errorf("host: cannot read the trust policy: %w", err)
	}
	accepts, problems := share.ParsePolicy(b)
	if len(problems) > 0 {
		return nil, fmt.Errorf("host: invalid trust policy: %s:%s (and %d more problems)", s.TrustPolicy, problems[0], len(problems)-1)
	}
	carrier, err := share.New(share.Options{Admission: admission, MaxArchive: s.MaxUpload()})
	if err != nil {
		return nil, err
	}
	return &pulls{carrier: carrier, remote: share.NewRemote(share.RemoteOptions{Hosts: hosts}), accepts: accepts}, nil
}

func (p *pulls) close() {
	if p != nil {
		p.remote.Close()
	}
}

// Fetch gets an upload from a registry. Whoever publishes it, it is a stranger's: a
// trusted publisher is the operator's word for the operator's own folder.
func (o *oneUpload) Fetch(ctx context.Context, reference string) (admission.Source, error) {
	p := o.of.pulls.Load()
	if p == nil {
		return admission.Source{}, &skill.Error{Op: "host.Fetch", Code: skill.Forbidden, Message: "pulling skills is disabled on this host; the operator must set OPENSKILL_PULL_HOSTS"}
	}
	ref, err := share.ParseReference(reference)
	if err != nil {
		return admission.Source{}, err
	}
	got, err := p.carrier.Fetch(ctx, p.remote, ref, p.accepts, func(parcel *share.Parcel) error {
		return errors.Join(o.newer(parcel), o.Reserve(parcel.Size()))
	}, o.File)
	if err != nil {
		return admission.Source{}, theirs(err)
	}
	o.pulled = got
	return admission.Source{Archive: got.Archive}, nil
}

// theirs is what a registry has against this host, which is nothing against the caller.
func theirs(err error) error {
	var e *skill.Error
	if !errors.As(err, &e) || e.Code != skill.Unauthorized && e.Code != skill.Forbidden && e.Code != skill.RateLimited {
		return err
	}
	c := *e
	c.Code = skill.ToolInvocationError
	return &c
}

// newer refuses what is not higher than all that the tenant has of a skill.
func (o *oneUpload) newer(p *share.Parcel) error {
	return share.Older(p.Statement, o.of.Own(o.by.Tenant, p.ID))
}

// holds says whether what was admitted is what was signed, where it was pulled.
func (o *oneUpload) holds(a *admission.Admitted) error {
	if o.pulled == nil {
		return nil
	}
	return errors.Join(o.pulled.Holds(a), o.newer(o.pulled.Parcel))
}

// origin is where an upload came from, for the log: who vouches for it, and where it was.
func (o *oneUpload) origin() string {
	if o.pulled == nil {
		return "request"
	}
	return skill.CleanText(o.pulled.Reference+" "+o.pulled.Publisher, 300)
}
