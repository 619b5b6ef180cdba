package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"openskill/sdk/skill"
)

// progress shows what line returns, ten times a second, where a person reads standard
// error, and nothing elsewhere. It ends, and clears the line, with ctx or by the function that it returns.
func (a *cli) progress(ctx context.Context, line func() string) (finish func()) {
	if f, ok := a.stderr.(*os.File); !ok || !terminal(f) {
		return func() {}
	}
	ctx, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_, _ = fmt.Fprint(a.stderr, "\r\x1b[K"+skill.CleanText(line(), 78))
			case <-ctx.Done():
				_, _ = fmt.Fprint(a.stderr, "\r\x1b[K")
				return
			}
		}
	}()
	return func() { end(); <-ended }
}

// bar draws how much of something is done, from 0 to 1.
func bar(done float64) string {
	const columns = 30
	n := int(min(max(done, 0), 1) * columns)
	return fmt.Sprintf("[%s%s] %3.0f %%", strings.Repeat("=", n), strings.Repeat(" ", columns-n), 100*done)
}
