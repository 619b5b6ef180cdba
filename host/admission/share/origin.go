package share

import (
	"net/url"
	"regexp"
	"strings"

	"openskill/sdk/skill"
)

// Origin is where skills are added from: a repository of a server with archives as GitHub has them, or a host that lists
// its Agent Skills under /.well-known/agent-skills/.
type Origin struct {
	server     string // SCHEME://HOST
	repository string // OWNER/REPO; "" for a host that lists skills
	folder     string // of the repository; "" for all of it
	ref        string // branch, tag or commit; "" for the default branch
	skill      string // the name of one skill of the list; "" for any
}

// GitHub, and what its repositories begin with.
const (
	gitHub       = "github:"
	gitHubServer = "https://github.com"
)

// indexPath is where hosts list their Agent Skills.
const indexPath = "/.well-known/agent-skills/index.json"

var (
	ownerName      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
	repositoryName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`)
	refName        = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*([./][A-Za-z0-9_-]+)*$`)
	skillName      = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
)

// ParseOrigin reads github:OWNER/REPO[/FOLDER][@REF], https://HOST/OWNER/REPO[/FOLDER][@REF] or the address of a page of
// GitHub, and https://HOST, which may end with the path of its list and with #SKILL. The error is an *skill.Error,
// INVALID_ARGUMENT.
func ParseOrigin(text string) (Origin, error) {
	wrong := func(why string) (Origin, error) {
		return Origin{}, invalid("share.ParseOrigin", "invalid source %q: %s", skill.CleanText(text, 120), why)
	}
	address := text
	if rest, ok := strings.CutPrefix(text, gitHub); ok {
		address = gitHubServer + "/" + rest
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || len(text) > 1024 || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "":
		return wrong("use github:OWNER/REPO[/FOLDER][@REF] or https://HOST")
	case u.Fragment != "" && !skillName.MatchString(u.Fragment):
		return wrong("after # comes the name of a skill")
	}
	o := Origin{server: u.Scheme + "://" + u.Host, skill: u.Fragment}
	if address == text && (u.Path == "" || u.Path == "/" || u.Path == indexPath) {
		return o, nil
	}
	names, ref, hasRef := strings.Trim(u.Path, "/"), "", false
	if i := strings.LastIndex(names, "@"); i >= 0 { // a folder may have one, too
		names, ref, hasRef = names[:i], names[i+1:], true
	}
	parts := strings.Split(names, "/")
	if len(parts) > 3 && parts[2] == "tree" { // a page of GitHub
		ref, hasRef = parts[3], true
		parts = append(parts[:2:2], parts[4:]...)
	}
	switch {
	case len(parts) < 2 || o.skill != "" || !ownerName.MatchString(parts[0]) || !repositoryName.MatchString(parts[1]):
		return wrong("use OWNER/REPO, with /FOLDER and @REF if needed")
	case hasRef && (!refName.MatchString(ref) || len(ref) > 200):
		return wrong("after @ comes a branch, a tag or a commit")
	}
	o.repository, o.folder, o.ref = parts[0]+"/"+strings.TrimSuffix(parts[1], ".git"), strings.Join(parts[2:], "/"), ref
	return o, nil
}

// place is what a trust policy calls the origin.
func (o Origin) place() string {
	switch {
	case o.repository == "":
		return o.server
	case o.server == gitHubServer:
		return gitHub + o.repository
	}
	return o.server + "/" + o.repository
}

// String returns a text that [ParseOrigin] reads.
func (o Origin) String() string {
	s := o.place()
	if o.folder != "" {
		s += "/" + (&url.URL{Path: o.folder}).EscapedPath()
	}
	if o.ref != "" {
		s += "@" + o.ref
	}
	if o.skill != "" {
		s += "#" + o.skill
	}
	return s
}
