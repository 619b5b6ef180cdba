package share

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/host/admission"
	"openskill/host/agentskills"
	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// member is an entry of a repository's archive.
type member struct {
	name, text string
	kind       byte // 0: a file
}

// repository makes an archive as GitHub does.
func repository(t *testing.T, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	musttest.Do(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": commit}}))
	for _, m := range members {
		h := &tar.Header{Typeflag: m.kind, Name: "repo-main/" + m.name, Mode: 0o644, Size: int64(len(m.text))}
		if m.kind != 0 {
			h.Size, h.Linkname = 0, m.text
		}
		musttest.Do(t, w.WriteHeader(h))
		if m.kind == 0 {
			musttest.Get(w.Write([]byte(m.text)))(t)
		}
	}
	musttest.Do(t, w.Close())
	musttest.Do(t, z.Close())
	return b.Bytes()
}

func skillText(name, version string) string {
	if version != "" {
		version = "metadata:\n  version: \"" + version + "\"\n"
	}
	return "---\nname: " + name + "\ndescription: Does " + name + ".\n" + version + "---\nDo it.\n"
}

// origins serves what paths have, and says what was asked for.
type origins struct {
	*world
	url   string
	pages map[string][]byte
	asked []string
}

func newOrigins(t *testing.T) *origins {
	t.Helper()
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if !Loopback(address) {
			return nil, fmt.Errorf("the test connects to %s", address)
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	o := &origins{world: newWorld(t, func(o *RemoteOptions) { o.Dial = dial }), pages: map[string][]byte{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.asked = append(o.asked, r.URL.Path)
		b, ok := o.pages[r.URL.Path]
		switch {
		case !ok:
			http.NotFound(w, r)
		case bytes.HasPrefix(b, []byte("http")):
			http.Redirect(w, r, string(b), http.StatusFound)
		default:
			_, _ = w.Write(b)
		}
	}))
	t.Cleanup(s.Close)
	o.url = s.URL
	limits := skill.Limits{Timeout: time.Second, Memory: 1 << 20, Fuel: 1000, Output: 1000, Scratch: 1000}
	of := manifest.Options{Defaults: limits, Caps: limits}
	agent := func(folder string) (*manifest.Skill, []manifest.Problem) { return agentskills.ReadUpload(folder, of) }
	a := musttest.Get(admission.New(admission.Options{Registry: of, Agent: agent, Checker: noModules{}, MaxArchive: 1 << 20}))(t)
	o.carrier = musttest.Get(New(Options{Admission: a, MaxArchive: 1 << 20}))(t)
	return o
}

// add adds from a repository, or from the list of the host if path is "".
func (o *origins) add(path string, with ...func(*AddOptions)) ([]*Pulled, error) {
	o.t.Helper()
	options := AddOptions{PullOptions: PullOptions{Dir: o.dir, Policy: unsigned}}
	for _, w := range with {
		w(&options)
	}
	from := musttest.Get(ParseOrigin(o.url + path))(o.t)
	return o.carrier.Add(o.t.Context(), o.remote, from, options)
}

func named(names ...string) func(*AddOptions) { return func(o *AddOptions) { o.Skills = names } }

func all(o *AddOptions) { o.All = true }

// TestAddRepository: a skill of a repository is installed with its commit on record, restored, and updated.
func TestAddRepository(t *testing.T) {
	t.Parallel()
	o := newOrigins(t)
	files := []member{
		{name: "README.md", text: "a repository"},
		{name: "skills/pdf/SKILL.md", text: skillText("pdf", "")},
		{name: "skills/pdf/scripts/a.py", text: "print(1)\n"},
		{name: "skills/pdf/examples/inner/SKILL.md", text: skillText("inner", "")},
		{name: "skills/pdf/.hidden", text: "x"},
		{name: "skills/pdf/__pycache__/a.pyc", text: "x"},
		{name: "skills/pdf-forms/SKILL.md", text: skillText("pdf-forms", "1.2")},
		{name: "link", text: "/etc/passwd", kind: tar.TypeSymlink}, // of no skill
	}
	o.pages["/acme/skills/archive/HEAD.tar.gz"] = repository(t, files...)
	o.pages["/acme/skills/archive/"+commit+".tar.gz"] = repository(t, files...)
	o.refused("several", skill.InvalidArgument, "pdf, pdf-forms", func() error { _, err := o.add("/acme/skills"); return err })
	o.refused("an unknown one", skill.NotFound, `no skill "inner", but pdf, pdf-forms`, func() error { _, err := o.add("/acme/skills", named("inner")); return err })
	o.pages["/acme/hidden/archive/HEAD.tar.gz"] = repository(t, member{name: ".claude/skills/tea/SKILL.md", text: skillText("tea", "")})
	if of := musttest.Get(o.add("/acme/hidden"))(t); of[0].Reference != o.url+"/acme/hidden/.claude/skills/tea@"+commit {
		t.Errorf("in a hidden folder: %+v", of[0])
	}
	musttest.Do(t, errors.Join(os.RemoveAll(o.dir), os.Mkdir(o.dir, 0o755)))
	o.refused("no such folder", skill.NotFound, "no skill", func() error { _, err := o.add("/acme/skills/docs"); return err })
	o.refused("no such repository", skill.NotFound, "404", func() error { _, err := o.add("/acme/other"); return err })
	o.refused("a policy", skill.SignatureMissing, "not signed", func() error {
		_, err := o.add("/acme/skills", all, func(a *AddOptions) { a.Policy = by(key(t)) })
		return err
	})

	done := musttest.Get(o.add("/acme/skills/skills/pdf/"))(t)
	if len(done) != 1 || done[0].ID != "pdf" || !done[0].Changed || done[0].Trust != skill.Community || !strings.HasPrefix(done[0].Version, unversioned) {
		t.Fatalf("%+v", done[0])
	}
	if want := o.url + "/acme/skills/skills/pdf@" + commit; done[0].Reference != want {
		t.Errorf("%s, want %s", done[0].Reference, want)
	}
	got := tree(t, filepath.Join(o.dir, "pdf"))
	for name, there := range map[string]bool{"SKILL.md": true, "scripts/a.py": true, "examples/inner/SKILL.md": true, ".hidden": false, "__pycache__": false} {
		if (got[name] != "") != there {
			t.Errorf("%s: there is %v", name, got)
		}
	}
	if again := musttest.Get(o.add("/acme/skills", named("pdf")))(t); again[0].Changed {
		t.Errorf("added again: %+v", again[0])
	}
	if both := musttest.Get(o.add("/acme/skills", all))(t); len(both) != 2 || both[0].Changed || !both[1].Changed || both[1].Version != "1.2.0" {
		t.Errorf("%+v", both)
	}

	// The lock file's commit is fetched, not the branch.
	before := tree(t, o.dir)
	musttest.Do(t, os.RemoveAll(filepath.Join(o.dir, "pdf")))
	o.pages["/acme/skills/archive/HEAD.tar.gz"] = nil
	restored := musttest.Get(o.carrier.Restore(t.Context(), o.remote, PullOptions{Dir: o.dir}))(t)
	if len(restored) != 2 || fmt.Sprint(tree(t, o.dir)) != fmt.Sprint(before) {
		t.Errorf("%+v: %v", restored, tree(t, o.dir))
	}
	musttest.Do(t, os.RemoveAll(filepath.Join(o.dir, "pdf")))
	o.pages["/acme/skills/archive/"+commit+".tar.gz"] = repository(t, member{name: "skills/pdf/SKILL.md", text: skillText("pdf", "") + "more"})
	o.refused("restored from other files", skill.Conflict, "other files now", func() error {
		_, err := o.carrier.Restore(t.Context(), o.remote, PullOptions{Dir: o.dir})
		return err
	})

	o.pages["/acme/skills/archive/"+commit+".tar.gz"] = repository(t, member{name: "skills/pdf/SKILL.md", text: skillText("other", "")})
	o.refused("restored from another skill", skill.Conflict, "other files now", func() error {
		_, err := o.carrier.Restore(t.Context(), o.remote, PullOptions{Dir: o.dir})
		return err
	})

	// Without a version, the newest is the one that is added.
	for _, text := range []string{"more", "still more", "less"} {
		o.pages["/acme/skills/archive/v2.tar.gz"] = repository(t, member{name: "SKILL.md", text: skillText("pdf", "") + text})
		if next := musttest.Get(o.add("/acme/skills@v2"))(t); !next[0].Changed {
			t.Errorf("%s: %+v", text, next[0])
		}
	}
	o.pages["/acme/skills/archive/v3.tar.gz"] = repository(t, member{name: "a/SKILL.md", text: skillText("pdf-forms", "1.2") + "more"})
	o.refused("one version, other files", skill.Conflict, "versions do not change", func() error { _, err := o.add("/acme/skills@v3"); return err })
	o.pages["/acme/skills/archive/v3.tar.gz"] = repository(t, member{name: "a/SKILL.md", text: skillText("pdf-forms", "1.1")})
	o.refused("an older one", skill.DowngradeRefused, "not higher", func() error { _, err := o.add("/acme/skills@v3"); return err })
	musttest.Get(o.add("/acme/skills@v3", func(a *AddOptions) { a.Downgrade = true }))(t)
}

// TestAddHostile: what a server sends is bounded and checked, and one refused skill changes nothing.
func TestAddHostile(t *testing.T) {
	t.Parallel()
	o := newOrigins(t)
	good := member{name: "a/SKILL.md", text: skillText("a", "")}
	whole := repository(t, good, member{name: "a/x", text: strings.Repeat("words ", 10_000)})
	for name, c := range map[string]struct {
		sent []byte
		code skill.Code
		says string
	}{
		"a link":               {repository(t, good, member{name: "a/passwd", text: "/etc/passwd", kind: tar.TypeSymlink}), skill.ArchiveRejected, ""},
		"a hard link":          {repository(t, good, member{name: "a/passwd", text: "SKILL.md", kind: tar.TypeLink}), skill.ArchiveRejected, ""},
		"a device":             {repository(t, good, member{name: "a/null", kind: tar.TypeChar}), skill.ArchiveRejected, ""},
		"a climbing name":      {repository(t, good, member{name: "a/../../../b", text: "x"}), skill.ArchiveRejected, ""},
		"a name twice":         {repository(t, good, good), skill.ArchiveRejected, ""},
		"one of two is wrong":  {repository(t, good, member{name: "b/SKILL.md", text: "no frontmatter"}), skill.InvalidManifest, ""},
		"two of one name":      {repository(t, good, member{name: "b/SKILL.md", text: skillText("a", "")}), skill.Conflict, "two skills named a"},
		"no archive":           {[]byte("<html>"), skill.ArchiveRejected, "not a tar.gz"},
		"a cut off archive":    {whole[:len(whole)/2], skill.ArchiveRejected, "cut off"},
		"no skill":             {repository(t, member{name: "README.md", text: "x"}), skill.NotFound, "no skill"},
		"a zip bomb":           {repository(t, good, member{name: "a/zeros", text: strings.Repeat("\x00", 70<<20)}), skill.ArchiveRejected, "67108864 bytes"},
		"led to this machine":  {[]byte("http://169.254.169.254/latest/"), skill.NetworkDenied, ""},
		"led round and round":  {[]byte(o.url + "/acme/skills/archive/HEAD.tar.gz"), skill.NetworkDenied, "too many redirects"},
		"too much of a stream": {bytes.Repeat([]byte{0}, maxRepository+1), skill.PayloadTooLarge, "sends more than"},
	} {
		o.pages["/acme/skills/archive/HEAD.tar.gz"] = c.sent
		o.refused(name, c.code, c.says, func() error { _, err := o.add("/acme/skills", all); return err })
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o.refused("interrupted", skill.Cancelled, "interrupted", func() error {
		_, err := o.carrier.Add(ctx, o.remote, musttest.Get(ParseOrigin(o.url))(t), AddOptions{PullOptions: PullOptions{Dir: o.dir, Policy: unsigned}})
		return err
	})
}

// TestAddTooLarge reaches the bounds of a repository's archive.
func TestAddTooLarge(t *testing.T) {
	t.Parallel()
	o := newOrigins(t)
	var many bytes.Buffer
	z := musttest.Get(gzip.NewWriterLevel(&many, gzip.BestSpeed))(t)
	w := tar.NewWriter(z)
	for i := range maxMembers + 1 {
		musttest.Do(t, w.WriteHeader(&tar.Header{Name: fmt.Sprintf("r/%d", i)}))
	}
	musttest.Do(t, z.Close())
	var large bytes.Buffer
	z = musttest.Get(gzip.NewWriterLevel(&large, gzip.BestSpeed))(t)
	w = tar.NewWriter(z)
	musttest.Do(t, w.WriteHeader(&tar.Header{Name: "r/zeros", Size: maxUnzipped + 1}))
	zeros := make([]byte, 1<<20)
	for range maxUnzipped/len(zeros) + 1 {
		musttest.Get(z.Write(zeros))(t)
	}
	musttest.Do(t, z.Close())
	var skills []member
	for i := range maxBundled + 1 {
		skills = append(skills, member{name: fmt.Sprintf("%d/SKILL.md", i)})
	}
	for what, c := range map[string]struct {
		sent []byte
		says string
	}{
		"files": {many.Bytes(), "the repository is too large"}, "bytes": {large.Bytes(), "the repository is too large"},
		"skills": {repository(t, skills...), "more than 1000 skills"},
	} {
		o.pages["/acme/skills/archive/HEAD.tar.gz"] = c.sent
		o.refused(what, skill.PayloadTooLarge, c.says, func() error { _, err := o.add("/acme/skills"); return err })
	}
}

// TestAddOfHost: skills that a host lists are installed, if they are what it lists.
func TestAddOfHost(t *testing.T) {
	t.Parallel()
	o := newOrigins(t)
	archive := repository(t, member{name: "SKILL.md", text: skillText("pdf", "1.0")}, member{name: "a.txt", text: "x"})
	text := []byte(skillText("notes", ""))
	type entry struct{ Name, Type, URL, Digest string }
	list := func(entries ...entry) {
		o.pages[indexPath] = musttest.Get(json.Marshal(map[string]any{"skills": entries}))(t)
	}
	o.pages["/.well-known/agent-skills/pdf.tar.gz"], o.pages["/notes.md"] = archive, text
	pdf := entry{"pdf", "archive", "pdf.tar.gz", sum(archive)}
	notes := entry{"notes", "skill-md", "/notes.md", sum(text)}
	list(pdf, notes)
	o.refused("several", skill.InvalidArgument, "pdf, notes", func() error { _, err := o.add(""); return err })
	done := musttest.Get(o.add("", all))(t)
	if len(done) != 2 || done[0].ID != "pdf" || done[0].Version != "1.0.0" || done[1].ID != "notes" || done[1].Reference != o.url+"#notes" {
		t.Errorf("%+v", done)
	}
	musttest.Do(t, os.RemoveAll(filepath.Join(o.dir, "notes")))
	if restored := musttest.Get(o.carrier.Restore(t.Context(), o.remote, PullOptions{Dir: o.dir}))(t); len(restored) != 2 || !restored[0].Changed {
		t.Errorf("%+v", restored[0])
	}
	for name, c := range map[string]struct {
		list []entry
		code skill.Code
		says string
	}{
		"other bytes":           {[]entry{{"notes", "skill-md", "/notes.md", sum(archive)}}, skill.ArchiveRejected, "digest mismatch"},
		"no digest":             {[]entry{{"notes", "skill-md", "/notes.md", ""}}, skill.ArchiveRejected, "digest"},
		"an unknown type":       {[]entry{{"notes", "program", "/notes.md", sum(text)}}, skill.ArchiveRejected, "type"},
		"a name with a path":    {[]entry{{"../notes", "skill-md", "/notes.md", sum(text)}}, skill.ArchiveRejected, "name"},
		"another protocol":      {[]entry{{"notes", "skill-md", "file:///etc/passwd", sum(text)}}, skill.NetworkDenied, ""},
		"without TLS elsewhere": {[]entry{{"notes", "skill-md", "http://192.0.2.1/x", sum(text)}}, skill.NetworkDenied, "TLS"},
		"no address":            {[]entry{{"notes", "skill-md", "http://[", sum(text)}}, skill.ArchiveRejected, "url"},
		"missing":               {[]entry{{"notes", "skill-md", "/nothing", sum(text)}}, skill.NotFound, "404"},
	} {
		list(c.list...)
		o.refused(name, c.code, c.says, func() error { _, err := o.add("", all); return err })
	}
	for name, c := range map[string]struct {
		page []byte
		code skill.Code
	}{
		"no JSON":   {[]byte("<html>"), skill.ArchiveRejected},
		"too large": {bytes.Repeat([]byte(" "), maxMetadata+1), skill.PayloadTooLarge},
		"no skills": {[]byte("{}"), skill.NotFound},
	} {
		o.pages[indexPath] = c.page
		o.refused(name, c.code, "", func() error { _, err := o.add("", all); return err })
	}
}

// TestOrigins: what a source may look like. What is printed is read as the same.
func TestOrigins(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"github:anthropics/skills":                                           "github:anthropics/skills",
		"github:anthropics/skills/skills/pdf@v1.0":                           "github:anthropics/skills/skills/pdf@v1.0",
		"github:a/b/c@d@feature/x":                                           "github:a/b/c@d@feature/x",
		"https://github.com/anthropics/skills/tree/main/skills/pdf":          "github:anthropics/skills/skills/pdf@main",
		"https://github.com/anthropics/skills.git":                           "github:anthropics/skills",
		"https://git.example.com/a/b/my%20skill@main":                        "https://git.example.com/a/b/my%20skill@main",
		"https://skills.example.com":                                         "https://skills.example.com",
		"https://skills.example.com/":                                        "https://skills.example.com",
		"https://skills.example.com/.well-known/agent-skills/index.json#pdf": "https://skills.example.com#pdf",
	} {
		from, err := ParseOrigin(text)
		if err != nil || from.String() != want {
			t.Errorf("%s: %s, %v, want %s", text, from, err, want)
			continue
		}
		if again, err := ParseOrigin(from.String()); err != nil || again != from {
			t.Errorf("%s: read again as %+v, %v", text, again, err)
		}
	}
	for _, text := range []string{
		"", "github:", "github:a", "github:a/", "github:/b", "github:a/..", "github:../b", "github:a/b@", "github:a/b@../x", "github:a/b@-x", "github:a/b@x/../y",
		"github:a/b@x y", "github:a/b?x", "github:a/b#x", "ftp://a/b/c", "https://", "https://user:secret@host", "https://host?x=1", "https://host/one", "https://host#A/b", "./folder",
		"github:a/b/" + strings.Repeat("x", 1024),
	} {
		if from, err := ParseOrigin(text); err == nil {
			t.Errorf("%q is read as %+v", text, from)
		} else {
			wantCode(t, text, err, skill.InvalidArgument, "invalid source")
		}
	}
}
