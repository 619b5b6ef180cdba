// Command fetcher sends what it reads from standard input as a request, by the
// imported functions or through the file, as its environment says, and prints the
// response. Before it reads, it tries one too.
package main

import (
	"fmt"
	"io"
	"os"
	"unsafe"
)

//go:wasmimport openskill_v1 http_request
func httpRequest(request unsafe.Pointer, length uint32, responseLength unsafe.Pointer) uint32

//go:wasmimport openskill_v1 http_read
func httpRead(buffer unsafe.Pointer, length uint32, read unsafe.Pointer) uint32

func byFunctions(request []byte) ([]byte, error) {
	var n uint32
	if errno := httpRequest(unsafe.Pointer(unsafe.SliceData(request)), uint32(len(request)), unsafe.Pointer(&n)); errno != 0 {
		return nil, fmt.Errorf("http_request: errno %d", errno)
	}
	response := make([]byte, n)
	for rest := response; len(rest) > 0; rest = rest[n:] {
		if errno := httpRead(unsafe.Pointer(unsafe.SliceData(rest)), uint32(len(rest)), unsafe.Pointer(&n)); errno != 0 || n == 0 {
			return nil, fmt.Errorf("http_read: errno %d", errno)
		}
	}
	return response, nil
}

func byFile(request []byte) ([]byte, error) {
	f, err := os.OpenFile("/dev/http", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Write(request); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

func main() {
	fetch := byFile
	if os.Getenv("FETCH_BY") == "functions" {
		fetch = byFunctions
	}
	early, err := fetch([]byte("early"))
	if err != nil {
		early = []byte(err.Error())
	}
	for {
		request := make([]byte, 1<<20)
		n, err := os.Stdin.Read(request)
		if err != nil {
			break
		}
		response, err := fetch(request[:n])
		if err != nil {
			response = []byte(err.Error())
		}
		fmt.Printf("%s|%s|%v\n", early, response, os.Environ())
	}
}
