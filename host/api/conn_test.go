package api

import (
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func spare(c *conn) bool { _, ok := c.idle(); return ok }

// Who asked long ago and reads is not the first to make room, but who has stopped reading
// is; who is in a call, or has just been answered, never does.
func TestWhoMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cs := newConnSet(3, false)
		open := func(state int32) (c *conn, client net.Conn) {
			client, ours := net.Pipe()
			c = &conn{Conn: ours, set: cs}
			c.enter(state)
			t.Cleanup(func() { _ = client.Close() })
			return c, client
		}
		calls, _ := open(working)
		reads, client := open(working)
		idle, _ := open(waiting)
		for _, c := range []*conn{calls, reads, idle} {
			if !cs.add(c) {
				t.Fatal("there is room")
			}
		}
		reads.answered()
		idle.enter(waiting) // after it
		sent := make(chan error, 1)
		go func() {
			_, err := reads.Write(make([]byte, 4*sendPiece))
			sent <- err
		}()
		takes := func() {
			if _, err := io.CopyN(io.Discard, client, sendPiece); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		expect := func(want ...*conn) {
			t.Helper()
			all := cs.open.All()
			for i, c := range want {
				if !slices.Contains(all, c) {
					t.Errorf("number %d was closed", i)
				}
			}
			if len(all) != len(want) {
				t.Errorf("%d are open", len(all))
			}
		}
		time.Sleep(2 * patience)
		takes()
		second, _ := open(waiting)
		if !cs.add(second) {
			t.Error("nobody makes room")
		}
		expect(calls, reads, second)
		second.enter(working)
		third, _ := open(waiting)
		if cs.add(third) { // its client has just taken something
			t.Error("somebody makes room")
		}
		second.enter(waiting)
		time.Sleep(patience)
		if !cs.add(third) {
			t.Error("nobody makes room")
		}
		expect(calls, second, third)
		if err := <-sent; err == nil {
			t.Error("the answer was sent")
		}
	})
}

// A client that takes nothing was closed only where connections ran out, or with the
// deadline of the whole answer.
func TestStalledClientsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, takes := range []bool{false, true} {
			client, ours := net.Pipe()
			c := &conn{Conn: ours, set: newConnSet(100, false)}
			if !c.set.add(c) || c.SetWriteDeadline(time.Now().Add(time.Minute)) != nil {
				t.Fatal("there is room")
			}
			c.enter(working)
			c.answered()
			sent, began := make(chan error, 1), time.Now()
			go func() {
				_, err := c.Write(make([]byte, 4*sendPiece))
				sent <- err
			}()
			for range 4 {
				if time.Sleep(stallTime - time.Second); takes {
					_, _ = io.CopyN(io.Discard, client, sendPiece) // Write says what is wrong
				}
			}
			if err := <-sent; (err == nil) != takes {
				t.Errorf("takes a piece each %v: %v; it was sent: %v", stallTime-time.Second, takes, err == nil)
			}
			c.enter(working)
			_ = c.SetWriteDeadline(began.Add(stallTime*4 + time.Second)) // never fails
			if _, err := c.Write([]byte("x")); err == nil {
				t.Error("nobody has read it")
			}
			if took := time.Since(began); took > 5*stallTime {
				t.Errorf("the deadline of the whole answer has passed, after %v", took)
			}
			_, _ = client.Close(), c.Close() // they never fail
		}
	})
}

// A long answer may make room while it is sent, but not a stream behind which a handler
// goes on.
func TestStreamsMakeNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, ours := net.Pipe()
		c := &conn{Conn: ours, set: newConnSet(1, false)}
		a := newAnswer(c, time.Minute, func() {})
		c.enter(working)
		written := make(chan error, 1)
		go func() {
			_, err := a.Write(make([]byte, maxHeld+1))
			written <- err
		}()
		<-a.begun
		a.isMade()
		if spare(c) {
			t.Error("it has just begun")
		}
		time.Sleep(patience)
		if !spare(c) {
			t.Error("it makes no room though its client takes nothing")
		}
		a.Flush()
		if spare(c) {
			t.Error("it makes room though its handler goes on")
		}
		c.enter(working)
		a.isMade()
		if time.Sleep(patience); spare(c) {
			t.Error("a stream makes room")
		}

		a.end()
		if err := <-written; err == nil {
			t.Error("the client has taken all")
		}
		late := newAnswer(c, time.Minute, func() {})
		late.end()
		c.answered() // to the next request
		late.Flush()
		if time.Sleep(patience); !spare(c) {
			t.Error("a handler keeps the connection though its answer is over")
		}
		_, _ = client.Close(), ours.Close() // they never fail
	})
}

// halfPipe is a pipe whose one end can be closed for writing alone, as a socket can.
type halfPipe struct{ net.Conn }

func (halfPipe) CloseWrite() error { return nil }

// A client that was refused while it sends is read from, so that it finds the answer, but not
// for ever: not more than so many bytes, not through silence, not drop by drop, and not where
// somebody else needs the connection.
func TestLingeringHasBounds(t *testing.T) {
	for name, c := range map[string]struct {
		piece     int           // bytes that the client sends at once
		every     time.Duration // between two pieces
		most      int64         // bytes that are read
		least     time.Duration // until the connection is closed
		latest    time.Duration
		crowd     bool // others want the connection
		shutsDown bool
	}{
		"bytes":    {piece: 1 << 20, most: lingerBytes, latest: time.Second},
		"silence":  {piece: 0, every: time.Hour, least: lingerPause, latest: lingerPause},
		"too slow": {piece: 1, every: time.Millisecond, most: lingerPiece, least: lingerPause, latest: lingerPause},
		"long":     {piece: lingerPiece, every: lingerPause / 2, most: 100 * lingerPiece, least: lingerTime, latest: lingerTime},
		"crowd":    {piece: lingerPiece, every: lingerPause / 2, most: 2 * lingerPiece, least: patience, latest: patience + time.Second, crowd: true},
		"shutdown": {piece: lingerPiece, every: lingerPause / 2, most: 2 * lingerPiece, least: patience, latest: patience + time.Second, shutsDown: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, ours := net.Pipe()
				set := newConnSet(1, true)
				refused := &conn{Conn: halfPipe{ours}, set: set}
				refused.known.Store(true)
				refused.enter(receiving) // the rest of the body is not read
				if !set.add(refused) {
					t.Fatal("there is room")
				}
				refused.linger.Store(true)
				began, took := time.Now(), int64(0)
				done := make(chan struct{})
				go func() {
					defer close(done)
					for b := make([]byte, c.piece); ; time.Sleep(c.every) {
						n, err := client.Write(b)
						if took += int64(n); err != nil {
							return
						}
					}
				}()
				if c.crowd {
					go func() {
						another, _ := net.Pipe()
						for time.Sleep(time.Millisecond); !set.add(&conn{Conn: another, set: set}); {
							time.Sleep(50 * time.Millisecond)
						}
					}()
				}
				if c.shutsDown {
					go func() { _ = set.drain(t.Context()) }()
				}
				_ = refused.Close() // its error is that of a socket
				if d := time.Since(began); d < c.least || d > c.latest {
					t.Errorf("it lingered for %v, want %v to %v", d, c.least, c.latest)
				}
				_ = client.Close()
				if <-done; took > c.most {
					t.Errorf("%d bytes were read, want at most %d", took, c.most)
				}
			})
		})
	}
}
