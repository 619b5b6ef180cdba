package wasi

import (
	"bytes"
	"encoding/json"
	"strings"
)

// pluginRequest is a request as Extism's PDKs write it.
type pluginRequest struct {
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Header  map[string]string `json:"header"` // of older ones
}

// pluginResponse is the first line of what Config.Fetch answers.
type pluginResponse struct {
	Status  int32               `json:"status"`
	Headers map[string][]string `json:"headers"`
	Error   *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// maxPluginHead is how many bytes of a request are read beside its body. The host takes 40 KiB
// of them, as they are written below (package egress); escapes may make what a plug-in
// writes longer than that.
const maxPluginHead = 128 << 10

const longRequest = "a request and its body have at most 4 MiB"

// pluginHTTPRequest is (request, body) -> body of the response, 0 where that is empty. A
// request that is refused has the status 0, and as its body what was wrong, as JSON; that is in
// the logs, too. Extism's hosts end the run then.
func (w *World) pluginHTTPRequest(p []uint64) uint64 {
	g := &w.plug
	g.status, g.headers = 0, nil
	if g.mem.Length(p[0]) > maxPluginHead {
		return w.refusedRequest("PAYLOAD_TOO_LARGE", "a request without its body has at most 128 KiB")
	}
	if g.mem.Length(p[1]) > maxRequest {
		return w.refusedRequest("PAYLOAD_TOO_LARGE", longRequest)
	}
	var asked pluginRequest
	err := json.Unmarshal(w.block(p[0]), &asked)
	body := w.block(p[1])
	if err != nil {
		return w.refusedRequest("INVALID_ARGUMENT", `a request is a JSON object with url, method and headers`)
	}
	if asked.Headers == nil {
		asked.Headers = asked.Header
	}
	if asked.Method == "" {
		asked.Method = "GET"
	}
	head, err := json.Marshal(struct {
		Method  string            `json:"method"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
	}{strings.ToUpper(asked.Method), asked.URL, asked.Headers})
	if err != nil {
		return w.refusedRequest("INVALID_ARGUMENT", "the request cannot be written")
	}
	if len(head)+1+len(body) > maxRequest { // as it is written, where < has six bytes
		return w.refusedRequest("PAYLOAD_TOO_LARGE", longRequest)
	}
	request := append(append(head, '\n'), body...)
	g.mem.Free(p[0])
	g.mem.Free(p[1])
	if w.cfg.Fetch == nil {
		return w.refusedRequest("NETWORK_DENIED", "there is no network here")
	}
	w.charge(costRequest)
	answer := w.answer(request)
	w.copied(len(answer)) // a deadline that has passed ends the run here
	first, rest, _ := bytes.Cut(answer, []byte("\n"))
	var r pluginResponse
	if json.Unmarshal(first, &r) != nil {
		return w.refusedRequest("INTERNAL", "the host's answer cannot be read")
	}
	if r.Error != nil {
		return w.refusedRequest(r.Error.Code, r.Error.Message)
	}
	headers := make(map[string]string, len(r.Headers))
	for name, values := range r.Headers {
		headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	g.status = r.Status
	g.headers, _ = json.Marshal(headers) // strings only
	return w.put(rest)
}

// refusedRequest is the answer to a request that was not made.
func (w *World) refusedRequest(code, message string) uint64 {
	type refusal struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	b, _ := json.Marshal(struct { // strings only
		Error refusal `json:"error"`
	}{refusal{code, message}})
	w.logLine("error", []byte("http_request: "+code+": "+message))
	return w.put(b)
}

func (w *World) pluginHTTPStatus([]uint64) uint64  { return uint64(uint32(w.plug.status)) }
func (w *World) pluginHTTPHeaders([]uint64) uint64 { return w.put(w.plug.headers) }
