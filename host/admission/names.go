package admission

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"openskill/sdk/skill"
)

// clean checks the name of an entry. A folder is one whose name ends with a slash.
// What is returned is the name without that slash, and without the ./ that begins all names
// where a packer was given the folder as "."; it leads nowhere but into the folder, on any
// system. The folder itself has the name "".
func (t *tree) clean(raw string) (name string, folder bool, err error) {
	if raw == "." || raw == "./" {
		if t.claimedRoot {
			return "", false, reject(raw, "duplicate entry")
		}
		t.claimedRoot = true
		return "", true, nil
	}
	name, folder = strings.CutSuffix(strings.TrimPrefix(raw, "./"), "/")
	if why := t.wrong(name); why != "" {
		return "", false, reject(raw, "%s", why)
	}
	return name, folder, nil
}

// wrong says what is wrong with a name, "" for nothing.
func (t *tree) wrong(name string) string {
	switch {
	case name == "":
		return "the name is empty"
	case len(name) > t.o.MaxPath:
		return fmt.Sprintf("the path is too long: %d bytes, the limit is %d", len(name), t.o.MaxPath)
	case !utf8.ValidString(name):
		return "the name is not valid UTF-8"
	case strings.HasPrefix(name, "/"):
		return "the name is absolute; names are relative to the skill's folder"
	case strings.Contains(name, `\`):
		return "the name has a backslash; folders are separated by /"
	case strings.Contains(name, ":"):
		return "the name has a colon, which means a drive or stream on some systems"
	case strings.ContainsFunc(name, unseen):
		return "the name has a control or invisible character"
	}
	parts := strings.Split(name, "/")
	if len(parts) > t.o.MaxDepth {
		return fmt.Sprintf("the path has too many parts: %d, the limit is %d", len(parts), t.o.MaxDepth)
	}
	for _, part := range parts {
		switch {
		case part == "":
			return "the name has an empty part"
		case part == "." || part == "..":
			return "the name has a part " + part + "; names must stay inside the folder"
		case len(part) > t.o.MaxName:
			return fmt.Sprintf("a part of the name is too long: %d bytes, the limit is %d", len(part), t.o.MaxName)
		case strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") || strings.HasPrefix(part, " "):
			return "a part of the name begins or ends with a space, or ends with a dot, which some systems drop"
		case device(part):
			return "a part of the name is a device name on some systems"
		}
	}
	return ""
}

// ofFinder reports whether a file is one that macOS puts beside those of a folder. It is
// read as others are, and left out.
func ofFinder(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, "._") || base == ".DS_Store" || slices.Contains(strings.Split(name, "/"), "__MACOSX")
}

// device reports whether Windows takes a name for that of a device, whatever follows a
// dot in it.
func device(part string) bool {
	name, _, _ := strings.Cut(strings.ToUpper(part), ".")
	switch name = strings.TrimRight(name, " "); name {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	number, found := strings.CutPrefix(name, "COM")
	if !found {
		number, found = strings.CutPrefix(name, "LPT")
	}
	return found && utf8.RuneCountInString(number) == 1 && strings.Contains("0123456789¹²³", number)
}

// unseen are characters that make a name look like another one.
func unseen(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs, unicode.Other_Default_Ignorable_Code_Point) ||
		unicode.IsSpace(r) && r != ' ' || r == utf8.RuneError
}

// folded gives what file systems that ignore case and the form of composition
// compare: canonical caseless matching, Unicode section 3.13, D145.
func folded(fold cases.Caser, s string) string {
	return norm.NFC.String(fold.String(norm.NFD.String(s)))
}

// node is what stands under a folded path.
type node struct {
	name   string // as it was first spelled
	folder bool
	listed bool // by an entry of its own, and not only as the folder of one
}

// claim takes a clean name for a file or folder. It refuses a name that is taken,
// in this spelling or in one that some file system holds for the same.
func (t *tree) claim(name string, folder bool) error {
	key := "" // of what was walked, part by part: a slash composes with nothing
	for end := 0; end < len(name); {
		start := end
		if start > 0 {
			start++ // behind the slash
		}
		end = len(name)
		if i := strings.IndexByte(name[start:], '/'); i >= 0 {
			end = start + i
		}
		key += "/" + folded(t.fold, name[start:end])
		whole := end == len(name)
		if err := t.claimOne(key, name[:end], name, folder || !whole, whole); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) claimOne(key, name, entry string, folder, listed bool) error {
	if n, taken := t.seen[key]; taken {
		switch {
		case n.name != name:
			return reject(entry, "%s and %s differ only in case or character composition and would be one file on some systems", show(n.name), show(name))
		case n.folder != folder:
			return reject(entry, "%s is both a file and a folder", show(name))
		case listed && n.listed:
			return reject(entry, "duplicate entry")
		}
		n.listed = n.listed || listed
		return nil
	}
	count, what := &t.claimedFiles, "files"
	if folder {
		count, what = &t.claimedFolders, "folders"
	}
	if *count++; *count > t.o.MaxFiles {
		return reject("", "the archive has more than %d %s", t.o.MaxFiles, what)
	}
	t.seen[key] = &node{name: name, folder: folder, listed: listed}
	return nil
}

// show quotes a stranger's name for a message.
func show(name string) string { return `"` + skill.CleanText(name, 80) + `"` }

// top gives the first part of the files' names, if it is a folder and the same for all.
func (t *tree) top() (string, bool) {
	if len(t.files) == 0 {
		return "", false
	}
	first, _, ok := strings.Cut(t.files[0].Path, "/")
	for _, f := range t.files {
		if !ok || !strings.HasPrefix(f.Path, first+"/") {
			return "", false
		}
	}
	return first, ok
}

func parent(name string) string {
	if dir := path.Dir(name); dir != "." {
		return dir
	}
	return ""
}
