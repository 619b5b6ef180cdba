package admissiontest

import (
	"bytes"
	"fmt"
	"slices"

	"openskill/sdk/skill"
)

// polyglots are U05: archives that are something else as well, or say two things.
func polyglots() []Case {
	shell := []byte("#!/bin/sh\necho evil\n")
	other := zipOf(Entry{Name: "evil", Body: []byte("x")})
	honest := zipOf()
	entry := func(e Entry) []byte {
		e.Name, e.Body = "a", []byte("some text some text some text")
		return zipOf(e)
	}
	twoEnds := Zip{Entries: base(), Comment: other[len(other)-22:]}.Bytes()
	tarball := Tar{Blocks: baseTar()}.Plain()
	gzipped := Gzip(tarball)
	// The end of a zip64, which points to a directory of its own: record and locator.
	end64 := append(append([]byte("PK\x06\x06"), make([]byte, 52)...), append([]byte("PK\x06\x07"), make([]byte, 16)...)...)
	otherName := extra(0x7075, append([]byte{1, 0, 0, 0, 0}, "../evil"...))
	long := func(name string) Block {
		return Block{Name: "././@LongLink", Type: 'L', Body: []byte(name + "\x00"), Change: gnu}
	}

	list := []Case{
		// Something before, between, behind.
		rejected("U05-zip-prefix", Zip{Entries: base(), Prefix: shell}.Bytes(), ""),
		rejected("U05-zip-prefix-counted", Zip{Entries: base(), Prefix: shell, Honest: true}.Bytes(), ""),
		rejected("U05-zip-prefix-like-zip", Zip{Entries: base(), Prefix: []byte("PK\x03\x04evil"), Honest: true}.Bytes(), "before the entry"),
		rejected("U05-zip-prefix-zip", Zip{Entries: base(), Prefix: other}.Bytes(), "right before its end"),
		rejected("U05-zip-prefix-zip-counted", Zip{Entries: base(), Prefix: other, Honest: true}.Bytes(), "before the entry"),
		rejected("U05-zip-gap", entry(Entry{Behind: shell}), "before the zip's directory"),
		rejected("U05-zip-gap-inside", Zip{Entries: []Entry{
			{Name: "skill.yaml", Body: Manifest("up", "1.0.0"), Behind: shell}, {Name: "main.js", Body: []byte(Script)},
		}}.Bytes(), "before the entry"),
		rejected("U05-zip-before-directory", Zip{Entries: base(), Before: shell}.Bytes(), "before the zip's directory"),
		rejected("U05-zip-before-end", Zip{Entries: base(), Between: shell}.Bytes(), "right before its end"),
		rejected("U05-zip-suffix", Zip{Entries: base(), Suffix: shell}.Bytes(), "after the end"),
		rejected("U05-zip-suffix-zip", append(slices.Clone(honest), other...), "right before its end"),
		rejected("U05-zip-two-ends", twoEnds, "two end records"),
		rejected("U05-zip-hidden-entry", Zip{Entries: base(Entry{Name: "evil", Body: []byte("x")}), End: func(h []byte) {
			le.PutUint16(h[8:], 2)
			le.PutUint16(h[10:], 2)
		}}.Bytes(), "more than its entries"),
		rejected("U05-zip-behind-deflate", entry(Entry{Packed: append(deflated([]byte("some text some text some text")), shell...), Local: put16(8, 8), Central: put16(10, 8)}), "after the entry's compressed data"),

		// Two headers, two words.
		rejected("U05-zip-two-names", entry(Entry{LocalName: "b"}), "does not match"),
		rejected("U05-zip-two-names-up", entry(Entry{LocalName: "../../evil"}), "does not match"),
		rejected("U05-zip-two-methods", entry(Entry{Local: put16(8, 8)}), "does not match"),
		rejected("U05-zip-two-checksums", entry(Entry{Local: put32(14, 1)}), "does not match"),
		rejected("U05-zip-two-sizes", entry(Entry{Local: put32(22, 1)}), "does not match"),
		rejected("U05-zip-two-packed-sizes", entry(Entry{Deflate: true, Local: put32(18, 1)}), "does not match"),
		rejected("U05-zip-two-flags", entry(Entry{Local: put16(6, 1)}), "does not match"),
		rejected("U05-zip-no-entry", entry(Entry{Local: put32(0, 0x04034b51)}), "no entry at the place"),
		rejected("U05-zip-sizes-later-lie", entry(Entry{Later: true, Central: put32(16, 1)}), "does not match"),
		rejected("U05-zip-unicode-name", entry(Entry{Extra: extra(0x7075, append([]byte{1, 0, 0, 0, 0}, "../evil"...))}), "two names"),
		rejected("U05-zip-unicode-name-second", entry(Entry{Extra: append(extra(0x7075, []byte("\x01\x00\x00\x00\x00a")), otherName...)}), "two names"),
		rejected("U05-zip-unicode-name-local", entry(Entry{Before: otherName}), "two names"),
		rejected("U05-zip-extra-damaged", entry(Entry{Extra: []byte("up\xff\xff")}), "extra data"),
		rejected("U05-zip-extra-damaged-local", entry(Entry{Before: []byte("u")}), "extra data"),
		rejected("U05-zip-counts-disagree", Zip{Entries: base(), End: put16(8, 1)}.Bytes(), "inconsistent"),
		rejected("U05-zip-checksum", entry(Entry{Local: put32(14, 1), Central: put32(16, 1)}), "checksum"),
		rejected("U05-zip-stored-two-sizes", entry(Entry{Local: put32(22, 1), Central: put32(24, 1)}), "two sizes"),

		// What is not read here.
		rejected("U05-zip-encrypted", entry(Entry{Local: put16(6, 1), Central: put16(8, 1)}), "encrypted"),
		rejected("U05-zip-strongly-encrypted", entry(Entry{Local: put16(6, 0x40), Central: put16(8, 0x40)}), "feature"),
		rejected("U05-zip-masked", entry(Entry{Local: put16(6, 0x2000), Central: put16(8, 0x2000)}), "feature"),
		rejected("U05-zip64", entry(Entry{Extra: extra(1, make([]byte, 16))}), "zip64"),
		rejected("U05-zip64-local", entry(Entry{Before: extra(1, make([]byte, 16))}), "does not match"),
		rejected("U05-zip64-local-lie", entry(Entry{Before: extra(1, make([]byte, 16)), Local: elsewhere}), "does not match"),
		rejected("U05-zip64-local-twice", entry(Entry{Before: slices.Repeat(extra(1, make([]byte, 16)), 2), Local: elsewhere}), "zip64"),
		rejected("U05-zip64-local-short", entry(Entry{Before: extra(1, make([]byte, 8)), Local: elsewhere}), "zip64"),
		rejected("U05-zip64-end-in-extra", entry(Entry{Extra: extra(0xcafe, end64)}), "zip64"),
		rejected("U05-zip64-end-in-comment", entry(Entry{Note: end64}), "zip64"),
		rejected("U05-zip64-sizes", entry(Entry{Central: put32(24, 0xffffffff)}), ""),
		rejected("U05-zip64-end", Zip{Entries: base(), End: put16(10, 0xffff)}.Bytes(), ""),
		rejected("U05-zip-parts", Zip{Entries: base(), End: put16(4, 1)}.Bytes(), "several parts"),
		rejected("U05-zip-entry-elsewhere", entry(Entry{Central: put16(34, 1)}), "several parts"),
		rejected("U05-zip-empty", Zip{}.Bytes(), "empty"),

		// Not the archive that it seems.
		rejected("U05-nothing", []byte{}, "neither"),
		rejected("U05-text", []byte("skill.yaml"), "neither"),
		rejected("U05-pdf", append([]byte("%PDF-1.7\n"), honest...), "neither"),
		rejected("U05-gif", append([]byte("GIF89a"), honest...), "neither"),
		rejected("U05-module", append([]byte("\x00asm\x01\x00\x00\x00"), honest...), "neither"),
		rejected("U05-plain-tar", tarball, "neither"),
		rejected("U05-xz", []byte("\xfd7zXZ\x00\x00\x04"), "neither"),
		rejected("U05-zip-signature-only", []byte("PK\x03\x04"), "truncated"),
		rejected("U05-gzip-text", Gzip([]byte("no tar at all, and it is longer than nothing")), ""),
		rejected("U05-gzip-zip", Gzip(honest), ""),
		rejected("U05-gzip-gzip", Gzip(gzipped), ""),

		rejected("U05-gzip-zip-in-header", gzipExtra(honest, tarball), "extra data"),
		rejected("U05-gzip-zip-by-its-end", gzipThatEndsAsZip(), "also ends like a zip"),

		// One entry, two words.
		rejected("U05-tar-two-sizes", tarOf(PAX("size", "1"), Block{Name: "a", Body: []byte("x")}), "size is in an extended header"),
		rejected("U05-tar-two-pax", tarOf(PAX("path", "a"), PAX("mtime", "1"), Block{Name: "b"}), "two extended headers"),
		rejected("U05-tar-pax-and-gnu", tarOf(PAX("path", "a"), long("b"), Block{Name: "c"}), "two extended headers"),
		rejected("U05-tar-two-gnu", tarOf(long("a"), long("b"), Block{Name: "c", Change: gnu}), "two extended headers"),
		rejected("U05-tar-pax-and-global", tarOf(PAX("path", "a"), Global("comment", "x"), Block{Name: "b"}), "two extended headers"),

		// Cut off, or going on.
		rejected("U05-tar-suffix", Tar{Blocks: baseTar(), Suffix: shell}.Bytes(), "after the compressed data"),
		rejected("U05-tar-suffix-zeros", Tar{Blocks: baseTar(), Suffix: make([]byte, 512)}.Bytes(), "after the compressed data"),
		rejected("U05-tar-suffix-zip", Tar{Blocks: baseTar(), Suffix: honest}.Bytes(), "also ends like a zip"),
		rejected("U05-tar-two-members", append(slices.Clone(gzipped), tarOf()...), "after the end of the tar"),
		rejected("U05-tar-member-extra", append(Gzip(tarball[:1024]), gzipExtra(tarball[1024:], tarball)...), "extra data"),
		rejected("U05-tar-members-cut", append(Gzip(tarball[:1024]), Gzip(tarball[1024:])[:20]...), "damaged"),
		rejected("U05-tar-behind-end", Tar{Blocks: baseTar(), Behind: shell}.Bytes(), "after the end"),
		rejected("U05-tar-behind-end-tar", Tar{Blocks: baseTar(), Behind: tarball}.Bytes(), "after the end"),
		rejected("U05-tar-no-end", Tar{Blocks: baseTar(), NoEnd: true}.Bytes(), "truncated"),
		rejected("U05-tar-checksum", tarOf(Block{Name: "a", Broken: true}), "damaged"),
		rejected("U05-gzip-checksum", flip(gzipped, len(gzipped)-8), "damaged"),
		rejected("U05-gzip-size", flip(gzipped, len(gzipped)-1), "damaged"),
	}
	for _, m := range []uint16{1, 6, 9, 12, 14, 93, 95, 97, 98, 99} {
		list = append(list, rejected(fmt.Sprintf("U05-zip-method-%d", m), entry(Entry{Local: put16(8, m), Central: put16(10, m)}), "method"))
	}
	for i := 1; i < 8; i++ {
		list = append(list,
			rejected(fmt.Sprintf("U05-zip-cut-%d", i), honest[:len(honest)*i/8], ""),
			rejected(fmt.Sprintf("U05-tar-cut-%d", i), gzipped[:len(gzipped)*i/8], ""))
	}
	return list
}

// gzipThatEndsAsZip is a tar.gz whose last file is a zip, stored as it is, with all
// that follows as its comment.
func gzipThatEndsAsZip() []byte {
	inner := zipOf()
	pack := func() []byte { return Tar{Blocks: baseTar(Block{Name: "inner.zip", Body: inner})}.Plain() }
	plain := pack()
	end := bytes.Index(plain, inner) + len(inner)
	le.PutUint16(inner[len(inner)-2:], size16(plain[end:])+8) // and the end of the member
	return gzipStored(pack())
}

func flip(b []byte, at int) []byte {
	b = slices.Clone(b)
	b[at] ^= 0x55
	return b
}

// manifests are U06 and P02: archives whose manifest is the attack, or is wrong.
func manifests() []Case {
	var list []Case
	add := func(name, manifest, says string) {
		files := []Entry{{Name: "skill.yaml", Body: []byte(manifest)}, {Name: "main.js", Body: []byte(Script)}}
		list = append(list, Case{Name: name, Bytes: Zip{Entries: files}.Bytes(), Want: skill.InvalidManifest, Says: says})
	}
	plain := string(Manifest("up", "1.0.0"))
	swap := func(old, by string) string { return string(bytes.Replace([]byte(plain), []byte(old), []byte(by), 1)) }

	laughs := plain + "input_schema:\n  a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'i'; c++ {
		laughs += fmt.Sprintf("  %c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	add("U06-aliases", laughs, "")
	var keys bytes.Buffer
	for i := range 5_000 {
		fmt.Fprintf(&keys, "  k%d: 1\n", i)
	}
	add("U06-keys", plain+"limits:\n"+keys.String(), "")
	add("U06-depth", plain+"input_schema: "+string(bytes.Repeat([]byte("["), 20_000)), "")
	add("U06-flow-depth", plain+"input_schema: "+string(bytes.Repeat([]byte("{a: "), 10_000)), "")
	add("U06-large", plain+"# "+string(bytes.Repeat([]byte("x"), 64<<10)), "")
	add("U06-second-document", plain+"---\nid: evil\n", "")
	add("U06-duplicate-key", plain+"id: evil\n", "")
	add("U06-merge-key", plain+"<<: {id: evil}\n", "")
	add("U06-tag", swap("id: up", "id: !!binary dXA="), "")
	add("U06-not-utf8", swap("Answers", "\xff\xfe"), "UTF-8")
	add("U06-empty", "", "")
	add("U06-list", "skills: []\n", "")
	add("U06-unknown-key", plain+"colour: blue\n", "colour")
	add("U06-own-trust", plain+"trust: builtin\n", "trust")
	add("U06-id", swap("id: up", "id: ../up"), "id")
	add("U06-entry-up", swap("main.js", "../main.js"), "entry")
	add("U06-entry-absolute", swap("main.js", "/etc/passwd"), "entry")
	add("U06-entry-missing", swap("main.js", "other.js"), "other.js")
	add("U06-remote-schema", plain+"input_schema: {$ref: \"http://127.0.0.1:1/x\"}\n", "")
	add("U06-file-schema", plain+"input_schema: {$ref: \"file:///etc/passwd\"}\n", "")
	add("U06-packages", plain+"requires: [evil]\n", "requires")
	add("P02-cli", swap("type: wasm\nruntime: javascript", "type: cli\nruntime: python"), "trusted")
	add("P02-cli-fallback", plain+"fallback: {type: cli, runtime: python, entry: main.js}\n", "trusted")
	return append(list,
		Case{Name: "U06-no-manifest", Bytes: Zip{Entries: []Entry{{Name: "main.js", Body: []byte(Script)}}}.Bytes(), Want: skill.InvalidManifest, Says: "skill.yaml not found"},
		Case{Name: "U06-manifest-too-deep", Bytes: Zip{Entries: []Entry{{Name: "a/b/skill.yaml", Body: []byte(plain)}, {Name: "a/b/main.js"}}}.Bytes(), Want: skill.InvalidManifest, Says: "skill.yaml not found"},
		Case{Name: "U06-two-folders", Bytes: Zip{Entries: []Entry{{Name: "a/skill.yaml", Body: []byte(plain)}, {Name: "b/main.js"}}}.Bytes(), Want: skill.InvalidManifest, Says: "skill.yaml not found"},
		Case{Name: "U06-entry-is-a-folder", Bytes: Zip{Entries: []Entry{{Name: "skill.yaml", Body: []byte(plain)}, {Name: "main.js/a"}}}.Bytes(), Want: skill.InvalidManifest, Says: "main.js"},
		Case{Name: "U06-script-not-utf8", Bytes: Zip{Entries: []Entry{{Name: "skill.yaml", Body: []byte(plain)}, {Name: "main.js", Body: []byte("\xff\xfe")}}}.Bytes(), Want: skill.InvalidManifest, Says: "UTF-8"},
		Case{Name: "U06-script-large", Bytes: Zip{Entries: []Entry{{Name: "skill.yaml", Body: []byte(plain)}, {Name: "main.js", Body: bytes.Repeat([]byte("// 0123456789abcdef\n"), 220_000)}}}.Bytes(), Want: skill.InvalidManifest, Says: "script has more"},
	)
}
