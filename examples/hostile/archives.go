package hostile

import (
	"archive/zip"
	"bytes"
	"slices"

	"openskill/host/admission/admissiontest"
	"openskill/sdk/skill"
)

// Zip packs files as a stranger would, by name and content.
func Zip(files map[string]string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names) // the same bytes each time
	for _, name := range names {
		f, err := w.Create(name)
		if err == nil {
			_, err = f.Write([]byte(files[name]))
		}
		if err != nil {
			panic(err) // a buffer takes everything
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// archives are the U cases: those that admission is tested with, but for the ones that
// it must accept.
func archives() []Case {
	var all []Case
	for i, c := range admissiontest.Cases() {
		if c.Want == "" {
			continue
		}
		all = append(all, Case{
			Name: c.Name, Promise: Admission, Limit: "the rules for archives",
			Refused: []skill.Code{c.Want, skill.PayloadTooLarge}, // the size is looked at first
			Upload:  func() *Upload { return &Upload{Archive: admissiontest.Cases()[i].Bytes} },
		})
	}
	return all
}
