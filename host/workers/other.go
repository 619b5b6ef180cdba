//go:build !linux

package workers

import (
	"errors"
	"os"
	"os/exec"
)

type spawner struct{}

func newSpawner() *spawner                 { return &spawner{} }
func (*spawner) start(cmd *exec.Cmd) error { return cmd.Start() }
func (*spawner) close()                    {}

var errNoChannel = errors.New("worker: worker processes need Linux")

type link struct{ conn stream }

func newLink() (*link, []*os.File, error) { return nil, nil, errNoChannel }
func (*link) open() (stream, error)       { return nil, errNoChannel }
func (*link) close()                      {}

// Link is a worker's end of what it was started with.
type Link struct{ conn stream }

// Inherited gives that end.
func Inherited() (*Link, error) { return nil, errNoChannel }

// Close ends it.
func (*Link) Close() error            { return nil }
func (*Link) accept() (stream, error) { return nil, errNoChannel }

type bounds struct{}

type bound struct{}

func newBounds() *bounds                         { return &bounds{} }
func (*bounds) hold(int, uint64) (*bound, error) { return nil, errNoChannel }
func (*bounds) held() bool                       { return false }
func (*bounds) close()                           {}
func (*bounds) protection(uint64) Protection {
	return Protection{Name: "memory", Detail: errNoChannel.Error()}
}
func (*bound) release() {}
