package agentskills

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"openskill/host/manifest"
	"openskill/internal/firstline"
	"openskill/sdk/skill"
)

// maxEntries is how many files and folders a skill may have in all.
const maxEntries = 2 * manifest.MaxFiles

// folder is what one look at a skill's folder gave.
type folder struct {
	read    *FileSkill // what is in it; nil: it has problems
	asked   bool       // whose it is
	origin  manifest.Origin
	skill   *FileSkill         // what is given of that; nil: nothing
	skipped []manifest.Problem // why it is not served
	remarks []manifest.Problem // what its author should know
	stamps  []stamp            // of everything in it; nil where that could not be had
	young   bool               // the stamps prove nothing yet
}

// entries is what is in a folder, with / in paths that are relative to it.
type entries struct {
	files   []string
	sizes   map[string]int64
	refused map[string]string // what is there and is not read, and why
	links   []string          // path and target of symbolic links, in turn
	large   []large           // files of more than maxHashed bytes, which are not among files
	stamps  []stamp
}

// maxHashed is the size in bytes of files whose content counts in the digest. Of larger
// ones size and time of writing do: a host does not read gigabytes to list a skill.
const maxHashed = 64 << 20

type large struct {
	path    string
	size    int64
	written int64
}

// readFolder reads a skill's folder. o is complete.
func readFolder(at place, o *FileOptions) *folder {
	f := &folder{}
	dir, shown := at.dir, at.shown
	file := filepath.Join(shown, FileName)
	begun := time.Now()
	r, err := os.OpenRoot(dir)
	if err != nil {
		f.skip(shown, 0, "%s", plain(err))
		return f
	}
	defer r.Close()
	in, err := list(r, dir, maxEntries)
	if err != nil {
		f.skip(shown, 0, "%s", plain(err))
		return f
	}
	f.stamps, f.young = in.stamps, fresh(in.stamps, begun)
	p := f.instructions(r, file, at)
	digest, err := in.digest(r)
	if err != nil {
		f.skip(shown, 0, "%s", plain(err))
	}
	for _, at := range slices.Sorted(maps.Keys(in.refused)) {
		f.remark(filepath.Join(shown, filepath.FromSlash(skill.CleanText(at, 200))), "%s; it is neither read nor run", in.refused[at])
	}
	if len(f.skipped) > 0 {
		return f
	}
	s := &FileSkill{
		front: p.front, content: p.text(), path: dir, digest: digest, owner: at.root.Owner,
		refused: in.refused, stamps: in.stamps, young: f.young,
	}
	s.fill(r, in, o, func(format string, args ...any) { f.remark(shown, format, args...) })
	s.whole = func() string { return digest }
	if len(in.links)+len(in.large) > 0 {
		s.whole = sync.OnceValue(func() string { d, _ := manifest.Digest(dir); return d }) // which says nothing of links
	}
	f.read = s
	return f
}

// instructions reads the SKILL.md.
func (f *folder) instructions(r *os.Root, file string, at place) *parsed {
	name := filepath.Base(at.dir)
	if at.uploaded {
		name = ""
	}
	p := &parsed{}
	if src, err := readFile(r, FileName, MaxContent+1); err != nil {
		p.problems = []manifest.Problem{{File: file, Message: plain(err)}}
	} else {
		p = parse(file, name, src)
	}
	if at.root.Lenient {
		p.lenient(name)
	}
	f.skipped, f.remarks = append(f.skipped, p.problems...), append(f.remarks, p.remarks...)
	return p
}

func (f *folder) skip(file string, line int, format string, args ...any) {
	f.skipped = append(f.skipped, manifest.Problem{File: file, Line: line, Message: fmt.Sprintf(format, args...)})
}

func (f *folder) remark(file, format string, args ...any) {
	f.remarks = append(f.remarks, manifest.Problem{File: file, Message: fmt.Sprintf(format, args...)})
}

// list looks at everything in a folder, at most so many things. It follows no links.
func list(r *os.Root, dir string, most int) (*entries, error) {
	in := &entries{sizes: map[string]int64{}, refused: map[string]string{}}
	err := fs.WalkDir(r.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if len(in.stamps) == most {
			return fmt.Errorf("the folder holds more than %d files and folders", most)
		}
		in.stamps = append(in.stamps, stampOf(filepath.Join(dir, filepath.FromSlash(p)), info))
		switch {
		case d.IsDir():
		case d.Type()&fs.ModeSymlink != 0:
			target, err := r.Readlink(p)
			if err != nil {
				return err
			}
			in.links = append(in.links, p, target)
			in.refused[p] = "is a symbolic link"
		case !d.Type().IsRegular():
			in.refused[p] = "is not a regular file"
		default:
			if in.sizes[p] = info.Size(); info.Size() > maxHashed {
				in.large = append(in.large, large{p, info.Size(), info.ModTime().UnixNano()})
			} else {
				in.files = append(in.files, p)
			}
			switch {
			case nameCount(info) > 1:
				in.refused[p] = "is a hard link: the file has another name elsewhere"
			case !printable(p):
				in.refused[p] = "has a name with control characters"
			}
		}
		return nil
	})
	return in, err
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// moreLabel begins the hashed text of a folder that has more than files to hash.
const moreLabel = "openskill folder with links or large files 1\n"

// digest is that of [manifest.Digest]. A folder with symbolic links, which has none
// there, or with files that are too large to be hashed, gets one over that of its other
// files, over where the links lead, and over size and time of the large ones.
func (in *entries) digest(r *os.Root) (string, error) {
	digest, err := manifest.DigestFiles(r, in.files)
	if err != nil || len(in.links)+len(in.large) == 0 {
		return digest, err
	}
	h := sha256.New()
	_, _ = io.WriteString(h, moreLabel+digest+"\n")
	for _, s := range in.links {
		_, _ = fmt.Fprintf(h, "%d %s\n", len(s), s)
	}
	for _, f := range in.large {
		_, _ = fmt.Fprintf(h, "large %d %s %d %d\n", len(f.path), f.path, f.size, f.written)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// foreign are folders of package managers, whose files are nobody's instructions.
var foreign = []string{"node_modules", "__pycache__"}

// listed reports whether a file is offered to callers: hidden ones are not, nor what
// makes the folder a skill.
func listed(p string) bool {
	if p == FileName || p == manifest.ManifestFile {
		return false
	}
	return !slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool { return strings.HasPrefix(part, ".") || slices.Contains(foreign, part) })
}

// fill lists what callers can read and run.
func (s *FileSkill) fill(r *os.Root, in *entries, o *FileOptions, remark func(string, ...any)) {
	left := 0
	all := slices.Clone(in.files)
	for _, f := range in.large {
		all = append(all, f.path)
	}
	slices.Sort(all)
	for _, p := range all {
		if !listed(p) || in.refused[p] != "" {
			continue
		}
		ext := strings.ToLower(path.Ext(p))
		ending := ext
		if ext == "" && in.sizes[p] > 3 {
			ending = firstEnding(r, p)
		}
		script := slices.Contains(o.ScriptExtensions, ending)
		if !script && o.ResourceExtensions != nil && !slices.Contains(o.ResourceExtensions, ext) {
			continue
		}
		if len(s.resources)+len(s.scripts) == o.MaxFiles {
			left++
			continue
		}
		f := file{info: skill.AgentFile{Name: p, MediaType: mediaTypes[ending], Size: in.sizes[p]}, folder: s.path, most: o.MaxResource}
		if script {
			s.scripts = append(s.scripts, &FileScript{file: f, runner: o.Runner, ending: ending})
		} else {
			s.resources = append(s.resources, &fileResource{f})
		}
	}
	if left > 0 {
		remark("has more files than the %d that are listed; %d of them cannot be read or run", o.MaxFiles, left)
	}
}

// firstEnding is that of scripts for the program that a file's first line names; "" for other
// files.
func firstEnding(r *os.Root, name string) string {
	f, _, err := open(r, name)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, firstline.Most)
	n, _ := io.ReadFull(f, head)
	return firstline.Ending(firstline.Program(head[:n]))
}

var errNotRegular = errors.New("must be a regular file, not a link, folder or device")

// errHardLink says that a file's other name may be in another folder.
var errHardLink = errors.New("is a hard link: the file has another name elsewhere")

// readFile reads a regular file of one name, and not what a link points to: so many
// bytes at most. It does not wait for pipes.
func readFile(r *os.Root, name string, most int64) ([]byte, error) {
	f, _, err := open(r, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

func open(r *os.Root, name string) (*os.File, int64, error) {
	info, err := r.Lstat(name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errNotRegular
	}
	f, err := r.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, 0, err
	}
	if info, err = f.Stat(); err == nil {
		err = single(info)
	}
	if err != nil {
		_ = f.Close() // the error above tells why
		return nil, 0, err
	}
	return f, info.Size(), nil
}

func single(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errNotRegular
	}
	if nameCount(info) > 1 {
		return errHardLink
	}
	return nil
}

// plain takes the path out of a file error: the problem names the file already.
func plain(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}
