package share

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"openskill/sdk/skill"
)

// Reference names a skill in a registry: host/repository, with :tag or @digest behind it.
type Reference struct{ ref registry.Reference }

// ParseReference reads a reference. The error is an *skill.Error, INVALID_ARGUMENT.
func ParseReference(text string) (Reference, error) {
	ref, err := registry.ParseReference(text)
	if err != nil || len(text) > 1024 || ref.Registry == "" || strings.Contains(ref.Registry, "@") {
		return Reference{}, invalid("share.ParseReference", "invalid reference %q: use HOST[:PORT]/REPOSITORY followed by :VERSION or @sha256:…", skill.CleanText(text, 120))
	}
	if strings.Contains(ref.Reference, ":") && !sha256Digest.MatchString(ref.Reference) {
		return Reference{}, invalid("share.ParseReference", "the digest of a reference must be sha256: and 64 hex digits")
	}
	return Reference{ref}, nil
}

// Host is the registry, with its port.
func (r Reference) Host() string { return r.ref.Registry }

// Place is host/repository.
func (r Reference) Place() string { return r.ref.Registry + "/" + r.ref.Repository }

// Version is what stands behind the repository, a tag or a digest; "" for nothing.
func (r Reference) Version() string { return r.ref.Reference }

// At gives the reference with another tag or digest.
func (r Reference) At(version string) Reference {
	r.ref.Reference = version
	return r
}

// String gives the whole.
func (r Reference) String() string { return r.ref.String() }

// RemoteOptions say how registries are spoken with. Nil and zero fields mean the defaults.
type RemoteOptions struct {
	// PlainHTTP speaks without TLS with every registry. Without it that is so only with
	// those on this machine.
	PlainHTTP bool
	// Docker reads credentials from the configuration file of Docker, asking the helpers
	// that it names. Username and Password, if there are any, are used instead.
	Docker             bool
	Username, Password string
	// Dial connects; nil: to any address. SameHost refuses redirects and tokens of other
	// hosts than those that Hosts names.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Hosts are those that may be spoken with, with their ports as they are written; also
	// those that a registry leads to, for blobs and tokens. nil: any.
	Hosts []string
	// Idle is how long a registry may send nothing; 0: 30 s.
	Idle time.Duration
}

// Remote speaks with registries. It is safe for concurrent use.
type Remote struct {
	o         RemoteOptions
	transport *http.Transport
	docker    credentials.Store
	broken    error // of Docker's configuration
	headers   http.Header
}

// The bounds of an exchange with a registry.
const (
	maxRedirects = 5
	maxHeader    = 64 << 10
	maxMetadata  = 1 << 20 // bytes of one page of a list
)

// NewRemote makes a remote. It connects to nothing.
func NewRemote(o RemoteOptions) *Remote {
	if o.Idle <= 0 {
		o.Idle = 30 * time.Second
	}
	r := &Remote{o: o, headers: http.Header{"User-Agent": {"openskill"}}}
	proxy := http.ProxyFromEnvironment
	if o.Dial == nil {
		d := &net.Dialer{Timeout: 15 * time.Second}
		r.o.Dial = d.DialContext
	} else {
		proxy = nil // whoever chooses where to connect means the registry
	}
	r.transport = &http.Transport{
		Proxy: proxy, DialContext: r.dial, TLSHandshakeTimeout: 15 * time.Second, ResponseHeaderTimeout: o.Idle,
		MaxResponseHeaderBytes: maxHeader, DisableCompression: true, IdleConnTimeout: o.Idle, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if o.Docker && o.Username == "" {
		r.docker, r.broken = credentials.NewStoreFromDocker(credentials.StoreOptions{})
	}
	return r
}

// Close ends connections that wait for more.
func (r *Remote) Close() { r.transport.CloseIdleConnections() }

// dial makes connections that do not wait for ever.
func (r *Remote) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := r.o.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &patient{conn, r.o.Idle}, nil
}

// patient is a connection that waits so long for each byte, and not longer.
type patient struct {
	net.Conn
	idle time.Duration
}

func (p *patient) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(p.idle)); err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}

func (p *patient) Write(b []byte) (int, error) {
	if err := p.SetWriteDeadline(time.Now().Add(p.idle)); err != nil {
		return 0, err
	}
	return p.Conn.Write(b)
}

// guard looks at every request: also at those for tokens, and those that a registry's
// answer leads to.
type guard struct {
	r    *Remote
	home string // the registry that was named, with its port
}

// RoundTrip implements http.RoundTripper.
func (g guard) RoundTrip(req *http.Request) (*http.Response, error) {
	switch {
	case !g.r.allowed(req.URL.Host), near(req.URL.Host) && !near(g.home):
		return nil, errNotAllowed
	case req.URL.Scheme != "https" && !g.r.plain(req.URL.Host):
		return nil, errPlainHTTP
	}
	return g.r.transport.RoundTrip(req)
}

// redirect counts, and never gives up TLS. Credentials stay behind: oras takes them out
// of a request to another origin.
func redirect(req *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= maxRedirects:
		return errTooMany
	case req.URL.Scheme != "https" && via[0].URL.Scheme == "https":
		return errPlainHTTP
	}
	return nil
}

func (r *Remote) allowed(host string) bool {
	if r.o.Hosts == nil {
		return true
	}
	for _, h := range r.o.Hosts {
		if strings.EqualFold(strings.TrimSuffix(h, ":443"), strings.TrimSuffix(host, ":443")) {
			return true
		}
	}
	return false
}

// plain reports whether a host is spoken with without TLS.
func (r *Remote) plain(host string) bool { return r.o.PlainHTTP || Loopback(host) }

// Loopback reports whether host, perhaps with a port, is this machine by its name.
func Loopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(name)
	return err == nil && a.Unmap().IsLoopback()
}

// near reports whether a host is of this machine or its own link: loopback, where services
// trust whoever reaches them, and the addresses at which clouds tell a machine its secrets.
// A registry that is elsewhere has no business there.
func near(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	a, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return Loopback(host) || err == nil && (a.Unmap().IsLinkLocalUnicast() || a.IsUnspecified())
}

// authorized is the client with the credentials for one registry.
func (r *Remote) authorized(host string) (*auth.Client, error) {
	if !r.allowed(host) {
		return nil, &skill.Error{Op: "share", Code: skill.NetworkDenied, Message: skill.CleanText("the host "+host+" is not allowed for pulls", skill.MaxMessage)}
	}
	c := &auth.Client{Client: &http.Client{Transport: guard{r, host}, CheckRedirect: redirect}, Header: r.headers, Cache: auth.NewCache(), ClientID: "openskill"}
	switch {
	case r.o.Username != "":
		c.Credential = auth.StaticCredential(host, auth.Credential{Username: r.o.Username, Password: r.o.Password})
	case r.broken != nil:
		return nil, &skill.Error{Op: "share", Code: skill.InvalidArgument, Message: "cannot read Docker's configuration file with the credentials", Err: r.broken}
	case r.docker != nil:
		c.Credential = credentials.Credential(r.docker)
	}
	return c, nil
}

func (r *Remote) repository(ref Reference) (*remote.Repository, error) {
	client, err := r.authorized(ref.Host())
	if err != nil {
		return nil, err
	}
	return &remote.Repository{
		Client: client, Reference: ref.ref, PlainHTTP: r.plain(ref.Host()), MaxMetadataBytes: maxMetadata,
		TagListPageSize: 1000, TagListMaxPages: maxPages, SkipReferrersGC: true,
	}, nil
}

// The bounds of a list.
const (
	maxPages = 10
	maxTags  = 5000
)

// tags lists the tags of a repository, or the first of them.
func tags(ctx context.Context, repo *remote.Repository) ([]string, error) {
	var all []string
	err := repo.Tags(ctx, "", func(page []string) error {
		if all = append(all, page...); len(all) >= maxTags {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err, all = nil, all[:maxTags]
	}
	return all, told(ctx, repo.Reference.Registry, err)
}

// versions gives those of the tags that are versions, the lowest first.
func versions(all []string) []string {
	var out []string
	for _, t := range all {
		if v := strings.ReplaceAll(t, "_", "+"); Version(v) {
			out = append(out, v)
		}
	}
	return sorted(out)
}

// newest is the highest version, of those that are released if there is one; "" for none.
func newest(sorted []string) string {
	for i := len(sorted) - 1; i >= 0; i-- {
		if !strings.Contains(strings.SplitN(sorted[i], "+", 2)[0], "-") {
			return sorted[i]
		}
	}
	if len(sorted) > 0 {
		return sorted[len(sorted)-1]
	}
	return ""
}

// open finds what a reference names; without tag and digest the newest version.
func (r *Remote) open(ctx context.Context, ref Reference) (*source, *remote.Repository, Reference, error) {
	repo, err := r.repository(ref)
	if err != nil {
		return nil, nil, ref, err
	}
	if ref.Version() == "" {
		all, err := tags(ctx, repo)
		if err != nil {
			return nil, nil, ref, err
		}
		version := newest(versions(all))
		if version == "" {
			return nil, nil, ref, &skill.Error{Op: "share", Code: skill.NotFound, Message: skill.CleanText(ref.Place()+" has no version of a skill", skill.MaxMessage)}
		}
		ref = ref.At(Tag(version))
	}
	return &source{from: repo, host: ref.Host(), place: ref.Place(), name: ref.String()}, repo, ref, nil
}
