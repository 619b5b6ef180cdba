package hostile

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"openskill/sdk/skill"
	asm "openskill/wasm/wasmtest"
)

// private are addresses of this machine, its networks and a cloud's metadata, as some
// parser reads them. There are as many as a run may send requests.
var private = [...][]string{
	{
		"127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "127%2e0.0.1", "localhost", "0.0.0.0", "10.0.0.1", "192.168.0.1",
		"169.254.169.254", "2852039166", "100.100.100.200", "0x7f.1", "a.example@127.0.0.1",
	},
	{
		"[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::127.0.0.1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]",
		"[::1%25lo]", "[fe80::1]", "[fc00::1]", "[fd00:ec2::254]", "::1", "127.0.0.1/../x", "127.0.0.1:80/%2e%2e/",
	},
}

// asks is what the manifest of network's skills asks for: as much as it can.
const asks = `["http://*", "https://*", "http://127.0.0.1", "http://[::1]", "http://169.254.169.254", "http://10.0.0.1"]`

// network are the N cases that a guest can play without a network of its own.
func network() []Case {
	var all []Case
	for i, hosts := range private {
		c := ofModule(Case{
			Name:    fmt.Sprintf("N01 requests to this machine and its networks, %s", [...]string{"IPv4", "IPv6"}[i]),
			Promise: Contained, Limit: "requests go to public addresses, where manifest and operator agree",
			Limits: skill.Limits{Timeout: 10 * time.Second}, Ends: []skill.Code{""}, Data: `{"answered": 0, "tried": 0}`,
		}, ready(sends(hosts)))
		upload := c.Upload
		c.Upload = func() *Upload {
			u := upload()
			u.Manifest = bytes.Replace(u.Manifest, []byte("permissions: {"), []byte("permissions: {http: "+asks+", "), 1)
			return u
		}
		all = append(all, c)
	}
	return all
}

// sends is a guest that sends a request to each host, and counts the answers, and the
// refusals that are not ones of the host's own: then it had tried.
func sends(hosts []string) []byte {
	const (
		status = len(`{"status":`)
		code   = len(`{"status":0,"url":"","headers":{},"error":{"code":"`)
		length = 12
	)
	g := newGuest(2, "fd_read", "http_request", "http_read")
	answered, tried := g.count("answered"), g.count("tried")
	list := g.numbers(512, 256)
	const response = 0x8000
	is := func(at int64, letter byte) asm.Code {
		return asm.I32(response+at) + asm.Load8 + asm.I32(int64(letter)) + asm.Ne
	}
	// A start-up may send nothing at all, so the input is read first.
	body := g.call("fd_read", asm.I32(0), asm.I32(list), asm.I32(1), asm.I32(length)) + asm.Drop
	for _, host := range hosts {
		request := fmt.Sprintf(`{"url": "http://%s"}`, host)
		if !strings.Contains(host, "/") {
			request = fmt.Sprintf(`{"url": "http://%s/"}`, host)
		}
		body += g.call("http_request", asm.I32(g.text(request)), asm.I32(int64(len(request))), asm.I32(length)) + ifOK(
			g.call("http_read", asm.I32(response), asm.I32(256), asm.I32(length))+asm.Drop,
			is(int64(status), '0')+asm.If(answered),
			is(int64(code), 'N')+is(int64(code), 'I')+asm.And+asm.If(tried))
	}
	g.Command(body + g.answer())
	return g.Bytes()
}
