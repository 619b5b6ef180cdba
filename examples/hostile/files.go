package hostile

import (
	"fmt"
	"strings"
	"time"

	"openskill/sdk/skill"
	asm "openskill/wasm/wasmtest"
)

// DataAllow are the entries of OPENSKILL_DATA_ALLOW that the F cases expect: all of them
// are granted the data folder but one, which asks for it all the same.
func DataAllow() string {
	var b strings.Builder
	for _, c := range files() {
		if c.Name != ungranted {
			b.WriteString("@*/" + string(c.ID()) + "; ")
		}
	}
	return b.String()
}

const ungranted = "F08 an upload that asks for data without a grant"

// files are the F cases. They expect a data folder that [Plant] has filled, and the
// entries of [DataAllow].
func files() []Case {
	case_ := func(name, limit, data string, module []byte) Case {
		return ofModule(Case{
			Name: name, Promise: Contained, Limit: limit, Limits: deep, Ends: []skill.Code{""}, Data: data,
		}, ready(module))
	}
	swapped := case_("F07 a file swapped for a link between look and open", "opening once and looking at what was opened", "", swap())
	swapped.Limits.Timeout = 2 * time.Second
	swapped.Ends = []skill.Code{"", skill.Timeout} // a leak traps
	swapped.Meanwhile = swapping
	opens := case_("F05 a million opens", "the cap on open files", `{"more than 1000": 0}`, manyOpens())
	opens.Ends = []skill.Code{"", skill.FuelExhausted, skill.Timeout}
	return []Case{
		case_("F01 path tricks", "names are resolved below what is mounted", `{"escaped": 0, "granted": 1}`, tricks()),
		case_("F02 planted symbolic links", "links do not lead out", `{"followed": 0, "granted": 1}`, plantedGuest(Links(), "followed")),
		case_("F03 TRUNC, CREAT, EXCL, APPEND with all rights", "read-only folders", `{"changed": 0}`, changes()),
		case_("F04 FIFO, device, socket and hard link", "only folders and regular files of one name are opened", `{"opened": 0, "granted": 1}`, plantedGuest(Specials(), "opened")),
		opens,
		case_("F06 offsets at 2^63 and cookies without a folder", "offsets are checked", `{"accepted": 0}`, offsets()),
		swapped,
		case_(ungranted, "data is a grant of the operator's", `{"granted": 0, "listed": 0}`, nosy()),
	}
}

// granted opens the one file that the guest may read, so that a host on which nothing
// can be opened does not pass.
func (g *guest) granted() asm.Code {
	return g.open(asm.I32(root), "data/"+Granted, 0, rightRead, 0) +
		ifOK(g.first()+asm.I32(int64(GrantedText[0]))+asm.Eq+asm.If(g.count("granted"))+g.shut())
}

// nosy lists the data folder and opens the file in it.
func nosy() []byte {
	g := newGuest(2, "path_open", "fd_close", "fd_read")
	g.Command(g.granted() + g.open(asm.I32(root), "data", oDir, rightRead, 0) + ifOK(g.count("listed")+g.shut()) + g.answer())
	return g.Bytes()
}

func tricks() []byte {
	g := newGuest(2, "path_open", "fd_close", "fd_read")
	var c asm.Code
	g.counter("escaped")
	for _, path := range []string{
		"/etc/passwd", "../etc/passwd", "../../../../../../etc/passwd", "data/../../etc/passwd", "data/../../" + Secret,
		"data/../" + Secret, "data/sub/../../../" + Secret, "skill/../../" + Secret, "..", "../" + Secret, "data/..\\" + Secret,
		"data/" + Granted + "\x00.jpg", "data/" + Granted + "/../../" + Secret, "data/./../../" + Secret, "data//..//..//" + Secret,
		"proc/self/environ", "/proc/self/environ", "proc/self/root/etc/passwd", "dev/mem", "/data/" + Granted,
		"%2e%2e/" + Secret, "data/%2e%2e/" + Secret, "data/\u2025/" + Secret, "data/\uff0e\uff0e/" + Secret, "data/\xc0\xae\xc0\xae/" + Secret,
		"C:\\Windows\\win.ini", "\\\\server\\share", "data/" + Granted + ":stream",
	} {
		c += g.open(asm.Get(0), path, 0, rightRead, 0) + ifOK(g.count("escaped")+g.shut())
	}
	// Below every descriptor that there may be.
	g.Command(g.granted() + asm.Times(16, 0, c) + g.answer())
	return g.Bytes()
}

func plantedGuest(names []string, count string) []byte {
	g := newGuest(2, "path_open", "fd_close", "fd_read")
	g.counter(count)
	var c asm.Code
	for _, name := range names {
		for _, flags := range []int64{0, oDir} {
			c += g.open(asm.I32(root), "data/"+name, flags, rightRead, 0) + ifOK(g.count(count)+g.shut())
		}
	}
	g.Command(g.granted() + c + g.answer())
	return g.Bytes()
}

func changes() []byte {
	g := newGuest(2, "path_open", "fd_close", "fd_filestat_set_size", "fd_allocate", "fd_filestat_set_times", "fd_pwrite",
		"path_create_directory", "path_unlink_file", "path_rename", "path_symlink", "path_link", "path_remove_directory", "path_filestat_set_times")
	changed := g.count("changed")
	path := func(s string) asm.Code { return asm.I32(g.text(s)) + asm.I32(int64(len(s))) }
	word := g.numbers(g.text("hacked"), 6)
	fd := asm.I32(opened) + asm.Load
	var c asm.Code
	for _, name := range []string{"data/" + Granted, "data/new", "data/sub", "data/sub/new", "data/" + Links()[0], "skill/" + entry, "skill/new", "new", "."} {
		for oflags := range int64(16) {
			for _, fdflags := range []int64{0, fdAppend} {
				c += g.open(asm.I32(root), name, oflags, allRights, fdflags) + ifOK(
					g.call("fd_write", fd, asm.I32(word), asm.I32(1), asm.I32(0))+ifOK(changed)+
						g.call("fd_pwrite", fd, asm.I32(word), asm.I32(1), asm.I64(0), asm.I32(0))+ifOK(changed)+
						g.call("fd_filestat_set_size", fd, asm.I64(1))+ifOK(changed)+
						g.call("fd_allocate", fd, asm.I64(0), asm.I64(1<<20))+ifOK(changed)+
						g.call("fd_filestat_set_times", fd, asm.I64(1), asm.I64(1), asm.I32(5))+ifOK(changed)+
						g.shut())
			}
		}
	}
	at := asm.I32(root)
	for _, name := range []string{"data/" + Granted, "data/sub", "data/new", "skill/" + entry} {
		c += g.call("path_create_directory", at, path(name)) + ifOK(changed) +
			g.call("path_unlink_file", at, path(name)) + ifOK(changed) +
			g.call("path_remove_directory", at, path(name)) + ifOK(changed) +
			g.call("path_rename", at, path(name), at, path("data/moved")) + ifOK(changed) +
			g.call("path_rename", at, path(name), at, path("work/moved")) + ifOK(changed) +
			g.call("path_link", at, asm.I32(0), path(name), at, path("work/linked")) + ifOK(changed) +
			g.call("path_symlink", path("/etc/passwd"), at, path(name+"-link")) + ifOK(changed) +
			g.call("path_filestat_set_times", at, asm.I32(1), path(name), asm.I64(1), asm.I64(1), asm.I32(5)) + ifOK(changed)
	}
	g.Command(c + g.answer())
	return g.Bytes()
}

func manyOpens() []byte {
	g := newGuest(2, "path_open")
	name := "data/" + Granted
	at, size := g.text(name), int64(len(name))
	many := g.counter("more than 1000")
	open := g.call("path_open", asm.I32(root), asm.I32(1), asm.I32(at), asm.I32(size), asm.I32(0), asm.I64(rightRead), asm.I64(0), asm.I32(0), asm.I32(opened))
	g.Command(asm.Times(1_000_000, 0, open+ifOK(asm.Get(1)+asm.I32(1)+asm.Add+asm.Set(1))) +
		asm.I32(1000) + asm.Get(1) + asm.LtU + asm.If(asm.I32(1)+asm.GlobalSet(many)) + g.answer())
	return g.Bytes()
}

func offsets() []byte {
	g := newGuest(2, "path_open", "fd_close", "fd_pread", "fd_seek", "fd_readdir")
	accepted := g.count("accepted")
	list := g.numbers(16, 64)
	fd := asm.I32(opened) + asm.Load
	var c asm.Code
	c += g.open(asm.I32(root), "data/"+Granted, 0, allRights, 0) + asm.Drop
	for _, offset := range []int64{-1, -1 << 63, 1<<63 - 1, 1 << 62} {
		// An offset that is far behind the end may be taken, but gives no byte.
		c += asm.I32(12) + asm.I32(0) + asm.Store +
			g.call("fd_pread", fd, asm.I32(list), asm.I32(1), asm.I64(offset), asm.I32(12)) + ifOK(asm.I32(12)+asm.Load+asm.If(accepted))
	}
	for whence := range int64(3) {
		c += g.call("fd_seek", fd, asm.I64(-1<<63), asm.I32(whence), asm.I32(16)) + ifOK(accepted)
	}
	c += g.call("fd_readdir", fd, asm.I32(16), asm.I32(64), asm.I64(-1), asm.I32(12)) + ifOK(accepted) + g.shut()
	g.Command(c + g.answer())
	return g.Bytes()
}

// swap opens one name 20,000 times and traps if it reads what is not granted.
func swap() []byte {
	g := newGuest(2, "path_open", "fd_close", "fd_read")
	c := g.open(asm.I32(root), "data/"+Swapped, 0, rightRead, 0) +
		ifOK(g.first()+asm.I32(int64(SecretText[0]))+asm.Eq+asm.If(asm.Unreachable)+g.shut())
	g.Command(asm.Times(20_000, 0, c) + g.print("{}"))
	return g.Bytes()
}

// chain is how many links lead from the first of the chain to a file.
const chain = 41

func chained(i int) string { return fmt.Sprintf("chain%d", i) }
