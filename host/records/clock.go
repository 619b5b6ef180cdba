package records

import (
	"log/slog"
	"time"
)

// MaxSkew is how far the clock of a host may be from that of a database that it shares.
const MaxSkew = 10 * time.Second

// skewTold is how far it is before people are told, and noise what is measured of clocks
// that agree.
const (
	skewTold = time.Second
	noise    = 100 * time.Millisecond
)

// compareClocks compares the clock of this host, before and after a question, with the
// database's answer.
func (l *Log) compareClocks(before, there, after time.Time) {
	l.mu.Lock()
	l.heard = before
	l.mu.Unlock()
	half := after.Sub(before) / 2
	skew, was := before.Add(half).Sub(there), l.Skew()
	if (skew - was).Abs() <= half+noise {
		return
	}
	if skew.Abs() <= half+noise {
		skew = 0
	}
	l.skew.Store(int64(skew))
	if skew.Abs() >= skewTold {
		l.o.Log.Warn("this host's clock differs from the database's: use NTP on both", slog.Duration("ahead", skew.Round(time.Millisecond)))
	} else if was.Abs() >= skewTold {
		l.o.Log.Info("this host's clock matches the database's again")
	}
}

// Skew is how far the clock of this host is ahead of the database's, as it was measured
// last; it is 0 where the difference is too small to tell.
func (l *Log) Skew() time.Duration { return time.Duration(l.skew.Load()) }

// DatabaseTime is the time by the database's clock: hosts that share it compare this with
// what others of them wrote.
func (l *Log) DatabaseTime() time.Time { return l.o.Now().Add(-l.Skew()) }
