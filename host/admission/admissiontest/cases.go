package admissiontest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"

	"openskill/sdk/skill"
)

// Case is an archive and what admission must say of it.
type Case struct {
	Name  string // U01-…, by the kind of its attack; good-… for those that are none
	Bytes []byte
	Want  skill.Code // "" for an archive that is accepted
	Says  string     // part of the reason; "" for whatever
}

// Manifest is a skill.yaml of a script in JavaScript that needs nothing, which
// every case has unless it is about the manifest.
func Manifest(id, version string) []byte {
	return fmt.Appendf(nil, "id: %s\nversion: %s\ndescription: Answers.\ntype: wasm\nruntime: javascript\nentry: main.js\n", id, version)
}

// Script answers every call with an object.
const Script = "console.log('{}');\n"

// Cases makes all cases. The slice and its bytes are shared: they must not be changed.
var Cases = sync.OnceValue(func() []Case {
	var all []Case
	for _, make := range []func() []Case{good, names, kinds, bombs, twins, polyglots, manifests} {
		all = append(all, make()...)
	}
	return all
})

// base are the two files of a skill, with others.
func base(more ...Entry) []Entry {
	return append([]Entry{{Name: "skill.yaml", Body: Manifest("up", "1.0.0")}, {Name: "main.js", Body: []byte(Script), Deflate: true}}, more...)
}

func baseTar(more ...Block) []Block {
	return append([]Block{{Name: "skill.yaml", Body: Manifest("up", "1.0.0")}, {Name: "main.js", Body: []byte(Script)}}, more...)
}

func zipOf(more ...Entry) []byte { return Zip{Entries: base(more...)}.Bytes() }
func tarOf(more ...Block) []byte { return Tar{Blocks: baseTar(more...)}.Bytes() }

func rejected(name string, b []byte, says string) Case {
	return Case{Name: name, Bytes: b, Want: skill.ArchiveRejected, Says: says}
}

func good() []Case {
	in := func(folder string) (z []Entry, t []Block) {
		for _, e := range base() {
			e.Name = folder + e.Name
			z = append(z, e)
		}
		for _, b := range baseTar() {
			b.Name = folder + b.Name
			t = append(t, b)
		}
		return z, t
	}
	folderZip, folderTar := in("up/")
	dotZip, dotTar := in("./")
	finder := []string{".DS_Store", "._up", "__MACOSX/._up", "__MACOSX/up/._main.js", "up/.DS_Store"}
	finderZip, finderTar := slices.Clone(folderZip), slices.Clone(folderTar)
	for _, name := range finder {
		finderZip = append(finderZip, Entry{Name: name, Body: []byte("of the Finder"), Deflate: true})
		finderTar = append(finderTar, Block{Name: name, Body: []byte("of the Finder")})
	}
	whole := Tar{Blocks: baseTar()}.Plain()
	later := base()
	for i := range later {
		later[i].Later = true
	}
	list := []Case{
		{Name: "good-zip", Bytes: zipOf()},
		{Name: "good-tar", Bytes: tarOf()},
		{Name: "good-zip-folder", Bytes: Zip{Entries: append([]Entry{{Name: "up/"}}, folderZip...)}.Bytes()},
		{Name: "good-tar-folder", Bytes: Tar{Blocks: append([]Block{{Name: "up/"}}, folderTar...)}.Bytes()},
		{Name: "good-zip64-before", Bytes: zipOf(Entry{Name: "a", Body: []byte("x"), Local: elsewhere, Before: extra(1, size64(1, 1))})},
		{Name: "good-zip64-behind", Bytes: zip64Later()},
		{Name: "good-zip-dot", Bytes: Zip{Entries: append([]Entry{{Name: "./"}}, dotZip...)}.Bytes()},
		{Name: "good-zip-finder", Bytes: Zip{Entries: finderZip}.Bytes()},
		{Name: "good-tar-finder", Bytes: Tar{Blocks: finderTar}.Bytes()},
		{Name: "good-tar-members", Bytes: slices.Concat(Gzip(whole[:700]), Gzip(nil), Gzip(whole[700:]))},
		{Name: "good-tar-dot", Bytes: Tar{Blocks: append([]Block{{Name: "./"}}, dotTar...)}.Bytes()},
		{Name: "good-tar-git", Bytes: Tar{Blocks: append([]Block{Global("comment", strings.Repeat("0", 40))}, folderTar...)}.Bytes()},
		{Name: "good-zip-sizes-later", Bytes: Zip{Entries: later}.Bytes()},
		{Name: "good-zip-comment", Bytes: Zip{Entries: base(), Comment: []byte("of a packer")}.Bytes()},
		{Name: "good-zip-nested", Bytes: zipOf(Entry{Name: "inner.zip", Body: zipOf()})},
		{Name: "good-zip-unicode", Bytes: zipOf(Entry{Name: "daten/Crème brûlée 日本.txt", Body: []byte("x")})},
		{Name: "good-tar-unicode", Bytes: tarOf(PAX("path", "daten/Crème brûlée 日本.txt"), Block{Name: "x", Body: []byte("x")})},
		{Name: "good-zip-set-uid", Bytes: zipOf(Entry{Name: "a", Mode: 0o104755})},
		{Name: "good-tar-set-uid", Bytes: tarOf(Block{Name: "a", Mode: 0o4755})},
		{Name: "good-tar-padded", Bytes: Tar{Blocks: baseTar(), Behind: make([]byte, 9216)}.Bytes()},
		{Name: "good-zip-no-device", Bytes: zipOf(Entry{Name: "console.js"}, Entry{Name: "com10"}, Entry{Name: "null.aux"}, Entry{Name: "lpt"})},
		{Name: "good-zip-extra", Bytes: zipOf(Entry{
			Name: "a", Extra: append(extra(0x5455, make([]byte, 5)), 0, 0, 0), Before: extra(0x5455, make([]byte, 9)), Note: []byte("of a packer"),
		})},
		{Name: "good-zip-no-slip", Bytes: zipOf(Entry{Name: "..%2f..%2fplain name", Body: []byte("x")})},
	}
	return list
}

// names are U01: names that lead elsewhere, in all spellings.
func names() []Case {
	var list []Case
	for _, n := range []struct{ name, raw, says string }{
		{"up", "../evil", ".."},
		{"down-and-up", "a/../../evil", ".."},
		{"inside-up", "a/../main2.js", ".."},
		{"ends-up", "a/..", ".."},
		{"only-up", "..", ".."},
		{"absolute", "/etc/evil", "absolute"},
		{"share", "//host/admission/share/evil", "absolute"},
		{"backslash-up", `..\evil`, "backslash"},
		{"backslash-inside", `a\..\..\evil`, "backslash"},
		{"backslash-share", `\\host\evil`, "backslash"},
		{"drive", `C:/evil`, "colon"},
		{"drive-relative", `C:evil`, "colon"},
		{"stream", "main.js:evil", "colon"},
		{"dot-part", "a/./evil", "part ."},
		{"empty-part", "a//evil", "empty part"},
		{"newline", "a\nevil", "control"},
		{"escape", "a\x1b[31mevil", "control"},
		{"override", "a\u202egpj.evil", "control"},
		{"zero-width", "ma\u200bin.js", "control"},
		{"separator", "a\u2028evil", "control"},
		{"not-utf8", "a\xff\xfeevil", "UTF-8"},
		{"trailing-dot", "main.js.", "dot"},
		{"trailing-space", "main.js ", "space"},
		{"up-space", ".. /evil", "space"},
		{"three-dots", ".../evil", "dot"},
		{"filler", "ma\u3164in.js", "control"},
		{"device", "NUL", "device"},
		{"device-with-ending", "lib/aux.js", "device"},
		{"device-with-digit", "Com\u00b9.js", "device"},
		{"device-with-space", "con .js", "device"},
		{"deep", strings.Repeat("d/", 16) + "f", "parts"},
		{"long-name", strings.Repeat("n", 256), "bytes"},
		{"long-path", strings.Repeat(strings.Repeat("n", 100)+"/", 10) + strings.Repeat("n", 15), "bytes"},
		{"macos-folder-up", "__MACOSX/../../evil", ".."},
	} {
		list = append(list,
			rejected("U01-zip-"+n.name, zipOf(Entry{Name: n.raw, Body: []byte("x")}), n.says),
			rejected("U01-tar-"+n.name, tarOf(PAX("path", n.raw), Block{Name: "x", Body: []byte("x")}), n.says))
	}
	return append(list,
		rejected("U01-zip-dots", zipOf(Entry{Name: "././evil", Body: []byte("x")}), "part ."),
		rejected("U01-zip-dot-twice", zipOf(Entry{Name: "./"}, Entry{Name: "./"}), "duplicate"),
		rejected("U01-zip-dot-same", zipOf(Entry{Name: "./main.js", Body: []byte("x")}), "duplicate"),
		rejected("U01-zip-empty", zipOf(Entry{Name: "", Body: []byte("x")}), "empty"),
		rejected("U01-zip-nul", zipOf(Entry{Name: "main.js\x00.txt", Body: []byte("x")}), "control"),
		rejected("U01-zip-folder-up", zipOf(Entry{Name: "../evil/"}), ".."),
		rejected("U01-zip-root", zipOf(Entry{Name: "/"}), "empty"),
		rejected("U01-tar-folder-up", tarOf(Block{Name: "../evil/"}), ".."),
		rejected("U01-tar-plain-up", tarOf(Block{Name: "../evil", Body: []byte("x")}), ".."),
		rejected("U01-tar-prefix-up", tarOf(Block{Name: "evil", Change: func(h []byte) { copy(h[345:], "../..") }}), ".."),
		rejected("U01-tar-gnu-long-up", tarOf(
			Block{Name: "././@LongLink", Type: 'L', Body: []byte("../../evil\x00"), Change: gnu}, Block{Name: "x", Change: gnu}), ".."),
		rejected("U01-tar-nul", tarOf(PAX("path", "main2.js\x00.txt"), Block{Name: "x"}), ""),
	)
}

// gnu makes a header one of GNU tar.
func gnu(h []byte) { copy(h[257:], "ustar  \x00") }

// kinds are U02: everything that is no file and no folder.
func kinds() []Case {
	var list []Case
	for _, k := range []struct {
		name string
		kind byte
		link string
		says string
	}{
		{"hard-link", '1', "skill.yaml", "hard link"},
		{"hard-link-out", '1', "/etc/passwd", "hard link"},
		{"link", '2', "main.js", "symbolic link"},
		{"link-out", '2', "../../etc/passwd", "symbolic link"},
		{"character-device", '3', "", "device"},
		{"block-device", '4', "", "device"},
		{"pipe", '6', "", "pipe"},
		{"contiguous", '7', "", "special"},
		{"gnu-dump", 'D', "", "special"},
		{"gnu-volume", 'V', "", "special"},
		{"gnu-multi", 'M', "", "special"},
		{"solaris-acl", 'A', "", "special"},
		{"solaris-extended", 'X', "", "special"},
		{"gnu-old-names", 'N', "", "special"},
		{"unknown", 'Q', "", "special"},
	} {
		list = append(list, rejected("U02-tar-"+k.name, tarOf(Block{Name: "evil", Type: k.kind, Link: k.link}), k.says))
	}
	for _, k := range []struct {
		name string
		mode uint32
		body string
		says string
	}{
		{"link", ModeLink, "main.js", "symbolic link"},
		{"link-out", ModeLink, "../../etc/passwd", "symbolic link"},
		{"character-device", ModeDevice, "", "device"},
		{"block-device", ModeBlock, "", "device"},
		{"pipe", ModePipe, "", "pipe"},
		{"socket", ModeSocket, "", "socket"},
		{"unknown", 0o150644, "", "special"},
		{"folder-by-mode", ModeFolder, "", "file and a folder"},
	} {
		list = append(list, rejected("U02-zip-"+k.name, zipOf(Entry{Name: "evil", Mode: k.mode, Body: []byte(k.body)}), k.says))
	}
	return append(list,
		rejected("U02-zip-link-of-dos", zipOf(Entry{Name: "evil", Mode: ModeLink, Body: []byte("/etc"), Central: put16(4, 20)}), "symbolic link"),
		rejected("U02-zip-folder-of-dos", zipOf(Entry{Name: "evil", Central: put32(38, 0x10)}), "file and a folder"),
		rejected("U02-zip-label-of-dos", zipOf(Entry{Name: "evil", Central: put32(38, 0x08)}), "label"),
		rejected("U02-zip-file-with-slash", zipOf(Entry{Name: "evil/", Mode: ModeFile}), "file and a folder"),
		rejected("U02-zip-folder-with-content", zipOf(Entry{Name: "evil/", Body: []byte("x")}), "folder with content"),
		rejected("U02-tar-link-then-file", tarOf(Block{Name: "d", Type: '2', Link: "/tmp"}, Block{Name: "d/evil", Body: []byte("x")}), "symbolic link"),
		rejected("U02-tar-sparse", tarOf(Block{Name: "evil", Type: 'S', Change: gnu}), "sparse"),
		rejected("U02-tar-pax-sparse", tarOf(
			PAX("GNU.sparse.major", "0", "GNU.sparse.minor", "1", "GNU.sparse.name", "evil", "GNU.sparse.size", "1000000", "GNU.sparse.numblocks", "1", "GNU.sparse.map", "0,1"),
			Block{Name: "x", Body: []byte("x")}), "sparse"),
		rejected("U02-tar-pax-link", tarOf(PAX("linkpath", "/etc/passwd"), Block{Name: "evil", Body: []byte("x")}), "file and a link"),
		rejected("U02-tar-gnu-long-link", tarOf(
			Block{Name: "././@LongLink", Type: 'K', Body: []byte("/etc/passwd\x00"), Change: gnu}, Block{Name: "evil", Change: gnu}), "file and a link"),
		rejected("U02-tar-global-path", tarOf(Global("path", "../evil"), Block{Name: "x"}), "global header"),
		rejected("U02-tar-global-size", tarOf(Global("size", "0"), Block{Name: "x"}), "global header"),
		rejected("U02-tar-file-with-slash", tarOf(PAX("path", "evil/"), Block{Name: "x", Body: []byte("x")}), "file and a folder"),
		rejected("U02-tar-folder-with-content", tarOf(Block{Name: "evil/", Body: []byte("x")}), ""),
	)
}

// bombs are U03: little on the wire that is much on the disk, in memory or in time.
func bombs() []Case {
	zeros := make([]byte, 65*mib)
	many := func(n int, name string) (z []Entry, t []Block) {
		for i := range n {
			z = append(z, Entry{Name: fmt.Sprintf(name, i)})
			t = append(t, Block{Name: fmt.Sprintf(name, i)})
		}
		return z, t
	}
	filesZip, filesTar := many(999, "f%d")
	foldersZip, foldersTar := many(1001, "d%d/")
	entriesZip, _ := many(60_000, "%d")
	// Each entry of the directory has the same data.
	mebibyte := zeros[:mib]
	packed := deflated(mebibyte)
	shared := base(Entry{Name: "kernel", Body: mebibyte, Deflate: true})
	kernel := int64(len(Zip{Entries: base()}.locals()))
	for i := range 100 {
		shared = append(shared, Entry{
			Name: fmt.Sprintf("copy%d", i), Body: mebibyte, Packed: packed, Central: put16(10, 8),
			NoLocal: true, Offset: func(int64) int64 { return kernel },
		})
	}
	// Each entry quotes the header of the next as its own data.
	inner := Zip{Entries: []Entry{{Name: "quoted", Body: []byte("x")}}}.Bytes()[:30+6+1]
	quoting := base(
		Entry{Name: "quoting", Body: inner},
		Entry{Name: "quoted", Body: []byte("x"), NoLocal: true, Offset: func(n int64) int64 { return n - int64(len(inner)) }})

	huge := Block{Name: "big", Body: []byte("x"), Change: func(h []byte) { octal(h[124:136], 1<<32) }}
	negative := Block{Name: "big", Body: []byte("x"), Change: func(h []byte) {
		copy(h[124:136], bytes.Repeat([]byte{0xff}, 12))
	}}
	var headers []Block
	for i := range 90 {
		headers = append(headers, PAX("comment", strings.Repeat("c", 100_000)), Block{Name: fmt.Sprint(i)})
	}
	return []Case{
		rejected("U03-zip-one-file", zipOf(Entry{Name: "big", Body: zeros, Deflate: true}), "more than"),
		rejected("U03-tar-one-file", tarOf(Block{Name: "big", Body: zeros}), "more than"),
		rejected("U03-zip-ratio", zipOf(Entry{Name: "big", Body: zeros[:60*mib], Deflate: true}), "times its size"),
		rejected("U03-tar-ratio", tarOf(Block{Name: "big", Body: zeros[:60*mib]}), "times its size"),
		rejected("U03-zip-files", Zip{Entries: base(filesZip...)}.Bytes(), "1000 files"),
		rejected("U03-tar-files", Tar{Blocks: baseTar(filesTar...)}.Bytes(), "1000 files"),
		rejected("U03-zip-folders", Zip{Entries: base(foldersZip...)}.Bytes(), "1000 folders"),
		rejected("U03-tar-folders", Tar{Blocks: baseTar(foldersTar...)}.Bytes(), "1000 folders"),
		rejected("U03-zip-entries", Zip{Entries: base(entriesZip...)}.Bytes(), "entries"),
		rejected("U03-zip-shared-data", Zip{Entries: shared}.Bytes(), "overlaps"),
		rejected("U03-zip-quoted-header", Zip{Entries: quoting}.Bytes(), "overlaps"),
		rejected("U03-zip-says-less", zipOf(Entry{Name: "big", Body: []byte("x"), Packed: deflated(zeros[:mib]), Local: put16(8, 8), Central: put16(10, 8)}), "more"),
		rejected("U03-zip-says-more", zipOf(Entry{Name: "big", Body: zeros[:1000], Packed: deflated([]byte("x")), Local: put16(8, 8), Central: put16(10, 8)}), "has 1"),
		rejected("U03-zip-says-4-gib", zipOf(Entry{
			Name: "big", Body: []byte("x"), Deflate: true, Local: put32(22, 0xfffffffe), Central: put32(24, 0xfffffffe),
		}), "bytes together"),
		rejected("U03-tar-says-4-gib", tarOf(huge), ""),
		rejected("U03-tar-says-negative", tarOf(negative), ""),
		rejected("U03-tar-pax-size", tarOf(PAX("size", "99999999999"), Block{Name: "big", Body: []byte("x")}), ""),
		rejected("U03-tar-pax-huge", tarOf(PAX("comment", strings.Repeat("c", 2*mib)), Block{Name: "x"}), ""),
		rejected("U03-tar-headers-only", tarOf(headers...), "headers and padding"),
		rejected("U03-tar-zeros", Tar{Blocks: baseTar(), Behind: zeros}.Bytes(), ""),
	}
}

// twins are U04: names that are the same for somebody.
func twins() []Case {
	var list []Case
	for _, n := range []struct{ name, a, b, says string }{
		{"same", "a", "a", "duplicate"},
		{"same-folder", "d/", "d/", "duplicate"},
		{"case", "Readme", "README", "differ only"},
		{"case-of-the-manifest", "SKILL.YAML", "b", "differ only"},
		{"composed", "caf\u00e9", "cafe\u0301", "differ only"},
		{"sharp-s", "stra\u00dfe", "STRASSE", "differ only"},
		{"kelvin", "\u212a", "k", "differ only"},
		{"long-s", "\u017f", "s", "differ only"},
		{"folder-case", "d/a", "D/b", "differ only"},
		{"file-and-folder", "d", "d/", "file and a folder"},
		{"file-above-file", "d", "d/a", "file and a folder"},
		{"file-below-file", "d/a", "d", "file and a folder"},
		{"manifest-as-folder", "skill.yaml/a", "b", "file and a folder"},
	} {
		list = append(list,
			rejected("U04-zip-"+n.name, zipOf(Entry{Name: n.a}, Entry{Name: n.b}), n.says),
			rejected("U04-tar-"+n.name, tarOf(PAX("path", n.a), Block{Name: kindOf(n.a)}, PAX("path", n.b), Block{Name: kindOf(n.b)}), n.says))
	}
	return append(list, rejected("U04-tar-dot", tarOf(Block{Name: "./main.js", Body: []byte("x")}), "duplicate"))
}

func kindOf(name string) string {
	if strings.HasSuffix(name, "/") {
		return "x/"
	}
	return "x"
}
