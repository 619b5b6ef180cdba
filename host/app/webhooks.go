package app

import (
	"context"
	"net/http"
	"slices"

	"openskill/host/api"
	"openskill/host/records"
	"openskill/host/workers/egress"
	"openskill/sdk/skill"
)

// post is what tells webhooks of the ends of calls; nil where the settings permit no addresses.
func (h *Host) post() *records.Post {
	public, origins := h.settings.WebhooksTo()
	if !public && len(origins) == 0 {
		return nil
	}
	client := egress.New(&egress.Options{Log: h.log, Alone: h.alone})
	rule := func(address string) (skill.HTTPRule, error) {
		if err := egress.CheckURL(address); err != nil {
			return skill.HTTPRule{}, err
		}
		o, _, err := skill.ParseHTTPOrigin(address)
		if err != nil {
			return skill.HTTPRule{}, err
		}
		a, literal := o.Address()
		if !slices.Contains(origins, o.String()) && (!public || o.Scheme != "https" || literal && !egress.Public(a)) {
			return skill.HTTPRule{}, &skill.Error{Op: "app.Webhooks", Code: skill.NetworkDenied, Subject: "url", Message: "OPENSKILL_WEBHOOKS does not permit webhooks at " + o.String()}
		}
		return skill.HTTPRule{HTTPOrigin: o, Methods: []string{http.MethodPost}}, nil
	}
	return &records.Post{
		Permits: func(address string) error {
			_, err := rule(address)
			return err
		},
		Send: func(ctx context.Context, address string, header map[string]string, body []byte) (int, error) {
			r, err := rule(address)
			if err != nil {
				return 0, err
			}
			res, err := client.Do(ctx, []skill.HTTPRule{r}, &egress.Request{Method: http.MethodPost, URL: address, Header: header, Body: body, Manual: true}, nil)
			if err != nil {
				return 0, err
			}
			return res.Status, nil
		},
	}
}

// webhooks are addresses that are told when calls have ended; nil where the settings permit none.
func (h *Host) webhooks() api.Webhooks {
	if h.kept.executions == nil {
		return nil
	}
	if w := h.kept.executions.Webhooks(); w != nil {
		return w
	}
	return nil
}
