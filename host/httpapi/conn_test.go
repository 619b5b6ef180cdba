package httpapi

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
		calls, _ := open(busy)
		reads, client := open(busy)
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
		second.enter(busy)
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
			c.enter(busy)
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
			c.enter(busy)
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
		c.enter(busy)
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
		c.enter(busy)
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
