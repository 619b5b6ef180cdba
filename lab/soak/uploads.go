package soak

import (
	"bytes"
	"fmt"
	"mime/multipart"

	"openskill/lab/load"
)

// uploader sends new versions of a skill: each is compiled, enabled, called and deleted.
type uploader struct {
	t      *load.Target
	module []byte // the skill echo's
}

// uploaded is the id of what is sent.
const uploaded = "soak_upload"

// cycle sends version n, and says what went wrong, or nothing.
func (u *uploader) cycle(n int) string {
	version := fmt.Sprintf("0.0.%d", n)
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	manifest := "id: " + uploaded + "\nversion: " + version + "\ndescription: Gives the text back.\ntype: wasm\nruntime: wasi\nentry: echo.wasm\n" +
		"limits: {timeout_ms: 10000}\npermissions: {}\n"
	// A module that the host has never seen: it is checked and compiled.
	module := custom(u.module, version)
	for _, p := range []struct {
		name string
		data []byte
	}{{"manifest", []byte(manifest)}, {"module", module}} {
		w, err := form.CreateFormFile(p.name, p.name)
		if err == nil {
			_, err = w.Write(p.data)
		}
		if err != nil {
			return err.Error() // a buffer takes all
		}
	}
	if err := form.Close(); err != nil {
		return err.Error()
	}
	for _, step := range []struct {
		name string
		r    *load.Request
	}{
		{"upload", &load.Request{Method: "POST", Path: "/skills", ContentType: form.FormDataContentType(), Body: body.Bytes()}},
		{"enable", &load.Request{Method: "POST", Path: "/skills/" + uploaded + ":enable", ContentType: "application/json", Body: []byte(`{"version":"` + version + `"}`)}},
		{"call", load.Invoke(uploaded, []byte(`{"input":{"text":"`+version+`"}}`))},
		{"delete", &load.Request{Method: "DELETE", Path: "/skills/" + uploaded + "/versions/" + version}},
	} {
		a, err := u.t.Do(step.r)
		switch {
		case err != nil:
			return fmt.Sprintf("%s of version %s: %s: %v", step.name, version, a.Code, err)
		case !a.Success, step.name == "call" && !bytes.Contains(a.Body, []byte(`"echoed":"`+version+`"`)):
			return fmt.Sprintf("%s of version %s: %s", step.name, version, a.Said())
		}
	}
	return ""
}

// custom is a module with one more custom section, which means nothing.
func custom(module []byte, text string) []byte {
	out := append([]byte(nil), module...)
	out = append(out, 0, byte(len(text)+6), 4, 's', 'o', 'a', 'k', byte(len(text)))
	return append(out, text...)
}
