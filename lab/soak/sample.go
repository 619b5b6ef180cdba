package soak

import (
	"bufio"
	"bytes"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"openskill/lab/load"
)

// Sample is what a host's processes held at one moment. What nobody told is -1.
type Sample struct {
	At         time.Duration // since the run began
	Calls      int64         // that had ended
	HostRSS    float64       // resident memory of the host's process, in bytes
	WorkersRSS float64       // and of its children together
	Workers    float64       // how many children there were
	HostFDs    float64       // open descriptors of the host
	WorkerFDs  float64       // the most of one child
	Threads    float64       // of the host
	WorkerThr  float64       // the most of one child
	Goroutines float64       // of the host, by /metrics
	Heap       float64       // bytes that Go's collector lets the heap grow to, twice what lives; by /metrics
	Disk       float64       // bytes of the state folder
}

// process is one of the kernel's.
type process struct {
	pid, parent  int
	rss, threads int64
}

// told reads goroutines and heap from a host's /metrics, if it has them.
func told(t *load.Target, s *Sample) bool {
	s.Goroutines, s.Heap = -1, -1
	a, err := t.Do(&load.Request{Method: "GET", Path: "/metrics"})
	if err != nil || a.Status != 200 {
		return false
	}
	s.Goroutines, s.Heap = metric(a.Body, "go_goroutines"), metric(a.Body, "go_memstats_next_gc_bytes")
	return s.Goroutines >= 0
}

// metric is the value of a metric without labels in Prometheus' text format, or -1.
func metric(text []byte, name string) float64 {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) >= 2 && f[0] == name {
			if v, err := strconv.ParseFloat(f[1], 64); err == nil && v >= 0 {
				return v
			}
			return -1
		}
	}
	return -1
}

// sizeOf is what the files of a folder take together, in bytes.
func sizeOf(folder string) float64 {
	var sum int64
	_ = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return nil
	})
	return float64(sum)
}
