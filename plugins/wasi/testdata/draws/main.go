// Draws looks at all that can differ between two of its runs: clocks, chance, the order
// of maps and of goroutines, the times of its files, and the network.
package main

import (
	"crypto/rand"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"
)

// early is from before the input is read.
var early = fmt.Sprint(time.Now(), mathrand.Int64())

func main() {
	input := "never read"
	if len(os.Args) < 2 || os.Args[1] != "silent" {
		b, err := io.ReadAll(os.Stdin)
		if err != nil {
			panic(err)
		}
		input = string(b)
	}
	fmt.Println(input, early)
	if name, ok := strings.CutPrefix(input, "read "); ok {
		text, err := os.ReadFile(name)
		fmt.Printf("%q %v\n", text, err)
	}

	began := time.Now()
	timer := time.After(20 * time.Millisecond)
	time.Sleep(10 * time.Millisecond)
	<-timer
	fmt.Println(time.Since(began), time.Now().Format(time.RFC3339Nano))

	var b [16]byte
	_, _ = rand.Read(b[:])
	fmt.Printf("%x %d %v\n", b, mathrand.Int64(), mathrand.Perm(10))

	m := map[string]int{}
	for i := range 20 {
		m[fmt.Sprint(mathrand.Int64())] = i
	}
	for k, v := range m {
		fmt.Print(k, "=", v, " ")
	}
	fmt.Println()

	a, c := make(chan int, 10), make(chan int, 10)
	for i := range 10 {
		a <- i
		c <- -i
	}
	for range 20 {
		select {
		case i := <-a:
			fmt.Print(i, " ")
		case i := <-c:
			fmt.Print(i, " ")
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			time.Sleep(time.Duration(mathrand.IntN(3)) * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			fmt.Print(i, " ")
		})
	}
	wg.Wait()
	fmt.Println()

	if f, err := os.Create("/work/file"); err == nil {
		_, _ = f.Write(b[:])
		_ = f.Close()
		info, err := os.Stat("/work/file")
		fmt.Println(info.ModTime().UnixNano(), err)
	}
	if f, err := os.OpenFile("/dev/http", os.O_RDWR, 0); err == nil && os.Getenv("ASK") != "" {
		for range 2 {
			fmt.Fprintf(f, "%s", os.Getenv("ASK"))
			buf := make([]byte, 4096)
			n, err := f.Read(buf)
			fmt.Printf("%q %v\n", buf[:n], err)
		}
	}
}
