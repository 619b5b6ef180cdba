// Package origin keeps web pages of other origins from using the authority that a browser, or
// an address, gives to requests to this host.
package origin

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"openskill/sdk/skill"
)

// The operations of the errors, by which callers tell them apart.
const (
	OpHost = "origin.Host"
	OpPage = "origin.Page"
)

// Own lists the origins of a host besides localhost and numeric addresses, as in
// https://skills.example. A name must be listed: whoever owns a name can make it point here.
type Own []string

// Host returns an error where a header Host names neither the host itself nor a listed origin.
// A page of a stranger's name that points here has no other origin to its browser, and only
// this tells.
func (o Own) Host(host string) error {
	u, err := url.Parse("http://" + host)
	if err == nil && u.Host == host && isNumeric(u.Hostname()) {
		return nil
	}
	for _, origin := range o {
		if u, err := url.Parse(origin); err == nil && strings.EqualFold(u.Host, host) {
			return nil
		}
	}
	return &skill.Error{
		Op: OpHost, Code: skill.Forbidden, Subject: skill.CleanText(host, 80),
		Message: fmt.Sprintf("unknown host name %q: use an IP address, localhost, or set OPENSKILL_HTTP_BASE_URL or OPENSKILL_HTTP_ORIGINS", skill.CleanText(host, 80)),
	}
}

// Page returns an error where the headers Origin and Sec-Fetch-Site of a request to host say
// that it comes from a page of another origin. Browsers name the origin in every request that
// can change something; other clients do not. reads allows links from other sites.
func (o Own) Page(origins []string, site, host string, reads bool) error {
	if o.allows(origins, site, host, reads) {
		return nil
	}
	return &skill.Error{
		Op: OpPage, Code: skill.Forbidden, Subject: skill.CleanText(strings.Join(origins, " "), 80),
		Message: "cross-origin request refused: add the origin to OPENSKILL_HTTP_BASE_URL or OPENSKILL_HTTP_ORIGINS",
	}
}

// Check is Host and Page for a handler that no other site may so much as link to.
func (o Own) Check(r *http.Request) error {
	return cmp.Or(o.Host(r.Host), o.Page(r.Header.Values("Origin"), r.Header.Get("Sec-Fetch-Site"), r.Host, false))
}

func (o Own) allows(origins []string, site, host string, reads bool) bool {
	if len(origins) > 1 {
		return false // no browser sends two, and a proxy may have checked the other one
	}
	if len(origins) == 0 || origins[0] == "" {
		return site != "cross-site" || reads
	}
	if slices.Contains(o, origins[0]) {
		return true
	}
	u, err := url.Parse(origins[0])
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host) && isNumeric(u.Hostname())
}

// isNumeric reports whether a host is localhost or an address, over which no name server has power.
func isNumeric(name string) bool {
	if strings.EqualFold(name, "localhost") {
		return true
	}
	_, err := netip.ParseAddr(name)
	return err == nil
}
