// Command dumper keeps its input in every place that a Go program has, and first
// looks for what another call's input might have left: in its variables, in its
// environment, and in all of its memory, which it reads byte by byte. It prints how
// many marks it found that are not its own, and how many that are.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"
	"unsafe"
)

var (
	kept   = map[string]string{}
	list   []string
	pool   sync.Pool
	shared string
	once   sync.Once
	calls  int
)

// memoryEnd is an address up to which there is memory: behind the input, and behind
// a large piece that was just allocated, since the heap grows upwards.
func memoryEnd(input []byte) uintptr {
	large := make([]byte, 1<<20)
	end := func(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) + uintptr(cap(b)) }
	return max(end(large), end(input))
}

// find looks for "MARK-" and five bytes. The word is put together here, so that the
// program does not hold it.
//
//go:nocheckptr
func find(own string, end uintptr) (others, mine int) {
	word := [5]byte{'M' ^ 1, 'A' ^ 1, 'R' ^ 1, 'K' ^ 1, '-' ^ 1}
	for at := uintptr(4096); at+16 < end; at++ {
		p := (*[10]byte)(unsafe.Add(unsafe.Pointer(nil), at))
		if p[0]^1 != word[0] || p[1]^1 != word[1] || p[2]^1 != word[2] || p[3]^1 != word[3] || p[4]^1 != word[4] {
			continue
		}
		switch {
		case string(p[5:10]) == own:
			mine++
		case digits(p[5:10]): // not where a buffer ends
			others++
		}
	}
	return others, mine
}

func digits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

func main() {
	started := time.Now()
	input, err := io.ReadAll(os.Stdin)
	if err != nil || len(input) < 10 {
		fmt.Println("no input", err)
		os.Exit(1)
	}
	own := string(input[5:10])
	others, mine := find(own, memoryEnd(input))
	state := len(kept) + len(list) + len(shared) + calls
	if pool.Get() != nil {
		state++
	}
	once.Do(func() { state-- })
	_, inEnv := os.LookupEnv("KEPT")
	goroutines := runtime.NumGoroutine()
	fmt.Println(others, mine > 0, state, inEnv, goroutines, time.Since(started) < time.Minute)

	kept[own], shared = string(input), string(input)
	list = append(list, string(input))
	calls++
	pool.Put(&shared)
	_ = os.Setenv("KEPT", own)
	runtime.SetFinalizer(new(string), func(s *string) { fmt.Println("FINAL", own) })
	go func() {
		time.Sleep(time.Millisecond)
		fmt.Println("GOROUTINE", own)
	}()
	time.AfterFunc(time.Millisecond, func() { fmt.Println("TIMER", own) })
	if own[4]%3 == 0 {
		os.Exit(0)
	}
	if own[4]%3 == 1 && own[3] == '0' {
		panic(own)
	}
}
