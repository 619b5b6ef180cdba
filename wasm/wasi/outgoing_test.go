package wasi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
	"openskill/wasm/wasi"
)

// answer is a network that says one thing.
func answer(response string) func(context.Context, []byte) []byte {
	return func(context.Context, []byte) []byte { return []byte(response) }
}

// echo is a network that says what it was asked, and how often.
func echo() func(context.Context, []byte) []byte {
	asked := 0
	return func(_ context.Context, request []byte) []byte {
		asked++
		return fmt.Appendf(nil, "%d:%s", asked, request)
	}
}

// fetched asks by the functions and reads all of the response, in pieces.
func fetched(g *guest, request string, piece uint64) string {
	g.t.Helper()
	ptr, n := g.put(atData, request)
	g.want(0, "http_request", ptr, n, atResult)
	total := g.u32(atResult)
	var b strings.Builder
	for {
		g.want(0, "http_read", atData, piece, atResult)
		n := g.u32(atResult)
		if n == 0 {
			break
		}
		b.WriteString(g.text(atData, n))
	}
	if b.Len() != int(total) {
		g.t.Errorf("the response is said to have %d bytes, and has %d", total, b.Len())
	}
	return b.String()
}

func TestOutgoingFunctions(t *testing.T) {
	g := newGuest(t, wasi.Config{Fetch: echo()})
	if got := fetched(g, "hello", 3); got != "1:hello" {
		t.Errorf("response %q", got)
	}
	if got := fetched(g, "", 100); got != "2:" {
		t.Errorf("response %q", got)
	}
	// A new request drops what is left of the response before.
	ptr, n := g.put(atData, "first")
	g.want(0, "http_request", ptr, n, atResult)
	if got := fetched(g, "second", 100); got != "4:second" {
		t.Errorf("response %q", got)
	}
}

// Off is what a world has that names no network: the guest is told, and goes on.
func TestOutgoingIsOff(t *testing.T) {
	root := musttest.Get(guestfs.NewTree(guestfs.Mount{Path: "/dev/http", FS: guestfs.Exchange{}}))(t)
	g := newGuest(t, wasi.Config{Root: root})
	ptr, n := g.put(atData, "x")
	g.want(guestfs.EACCES, "http_request", ptr, n, atResult)
	g.want(0, "http_read", atData, 10, atResult)
	if g.u32(atResult) != 0 {
		t.Error("there is a response")
	}
	fd := g.mustOpen("dev/http", 0, rightRead|rightWrite)
	if errno := g.write(fd, "x"); errno != 0 {
		t.Fatal(errno)
	}
	iovs, count := g.iovs(atData, 10)
	g.want(guestfs.EACCES, "fd_read", fd, iovs, count, atResult)
}

func TestOutgoingFile(t *testing.T) {
	root := musttest.Get(guestfs.NewTree(guestfs.Mount{Path: "/dev/http", FS: guestfs.Exchange{}}))(t)
	g := newGuest(t, wasi.Config{Root: root, Fetch: echo()})
	a := g.mustOpen("dev/http", 0, rightRead|rightWrite)
	b := g.mustOpen("dev/http", oCreate|oTrunc, rightRead|rightWrite)
	if got := g.read(a, 10); got != "" {
		t.Errorf("before a request %q is read", got)
	}
	for _, s := range []string{"he", "llo"} { // however it is buffered
		if errno := g.write(a, s); errno != 0 {
			t.Fatal(errno)
		}
	}
	if got := g.read(a, 3) + "|" + g.read(a, 100) + "|" + g.read(a, 100); got != "1:h|ello|" {
		t.Errorf("read %q", got)
	}
	if errno := g.write(a, "again"); errno != 0 {
		t.Fatal(errno)
	}
	if got := g.read(a, 100); got != "2:again" {
		t.Errorf("read %q", got)
	}
	// Each open file has a conversation of its own.
	if errno := g.write(a, "one"); errno != 0 {
		t.Fatal(errno)
	}
	if errno := g.write(b, "other"); errno != 0 {
		t.Fatal(errno)
	}
	if got := g.read(b, 2) + "|" + g.read(a, 100) + "|" + g.read(b, 100); got != "3:|4:one|other" {
		t.Errorf("read %q", got)
	}
	if got := fetched(g, "function", 100); got != "5:function" {
		t.Errorf("response %q", got)
	}
	if got := g.read(b, 100); got != "" {
		t.Errorf("the file reads %q of the function's response", got)
	}
	iovs, n := g.iovs(atData, 4)
	g.want(guestfs.ESPIPE, "fd_pread", a, iovs, n, 0, atResult)
	g.want(guestfs.ESPIPE, "fd_pwrite", a, iovs, n, 0, atResult)
	if _, errno := g.open("dev/http", oCreate|oExcl, rightRead, 0); errno != guestfs.EEXIST {
		t.Errorf("exclusive creation: %v", errno)
	}
	if _, errno := g.open("dev/http", oDirectory, rightRead, 0); errno != guestfs.ENOTDIR {
		t.Errorf("as a folder: %v", errno)
	}
}

// A request is bounded, and so is what a World keeps of requests.
func TestOutgoingIsBounded(t *testing.T) {
	root := musttest.Get(guestfs.NewTree(guestfs.Mount{Path: "/dev/http", FS: guestfs.Exchange{}}))(t)
	longest := 0
	fetch := func(_ context.Context, request []byte) []byte {
		longest = max(longest, len(request))
		return nil
	}
	g := newGuestContext(context.Background(), t, wasi.Config{Root: root, Fetch: fetch}, 128)
	const most = 4 << 20
	g.want(0, "http_request", 0, most, atResult)
	g.want(guestfs.EFBIG, "http_request", 0, most+1, atResult)
	fd := g.mustOpen("dev/http", 0, rightRead|rightWrite)
	iovs, n := g.iovs(0, most)
	g.want(0, "fd_write", fd, iovs, n, atResult)
	iovs, n = g.iovs(0, 1)
	g.want(guestfs.EFBIG, "fd_write", fd, iovs, n, atResult)
	if g.read(fd, 1) != "" || longest != most {
		t.Errorf("the longest request had %d bytes, want %d", longest, most)
	}
}

// Requests cost fuel: each, and by the bytes that come and go.
func TestOutgoingIsCharged(t *testing.T) {
	var units uint64
	cost := func(response int, request uint64) uint64 {
		g := newGuestContext(context.Background(), t, wasi.Config{Fetch: answer(strings.Repeat("x", response)), Charge: func(n uint64) { units += n }}, 16)
		units = 0
		g.want(0, "http_request", 0, request, atResult)
		return units
	}
	base := cost(0, 0)
	if base < 1<<16 {
		t.Errorf("a request costs %d units", base)
	}
	if got := cost(1<<20, 0) - base; got < 1<<17 {
		t.Errorf("1 MiB of response costs %d units", got)
	}
	if got := cost(0, 1<<19) - base; got < 1<<16 {
		t.Errorf("512 KiB of request cost %d units", got)
	}
}

// A network that does not answer ends with the run, as every wait does.
func TestOutgoingEndsWithTheContext(t *testing.T) {
	silent := func(ctx context.Context, _ []byte) []byte {
		<-ctx.Done()
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	g := newGuestContext(ctx, t, wasi.Config{Fetch: silent}, memoryPages)
	g.wantStop(wasi.ReasonDeadline, "http_request", 0, 0, atResult)

	ctx, cancel = context.WithCancel(context.Background())
	g = newGuestContext(ctx, t, wasi.Config{Fetch: func(ctx context.Context, _ []byte) []byte { cancel(); return silent(ctx, nil) }}, memoryPages)
	g.wantStop(wasi.ReasonCancelled, "http_request", 0, 0, atResult)
}

// What was asked for is no part of a saved state.
func TestOutgoingIsNotRestored(t *testing.T) {
	root := musttest.Get(guestfs.NewTree(guestfs.Mount{Path: "/dev/http", FS: guestfs.Exchange{}}))(t)
	cfg := wasi.Config{Root: root, Fetch: echo()}
	g := newGuest(t, cfg)
	fd := g.mustOpen("dev/http", 0, rightRead|rightWrite)
	saved := g.w.Save()
	defer func() { _ = saved.Release() }()
	if errno := g.write(fd, "one call's"); errno != 0 {
		t.Fatal(errno)
	}
	musttest.Do(t, g.w.Restore(saved, cfg))
	if got := g.read(fd, 100); got != "" {
		t.Errorf("the next call reads %q", got)
	}
	ptr, n := g.put(atData, "x")
	g.want(0, "http_request", ptr, n, atResult)
	musttest.Do(t, g.w.Restore(saved, cfg))
	g.want(0, "http_read", atData, 100, atResult)
	if g.u32(atResult) != 0 {
		t.Error("the next call reads a response of the call before")
	}
}
