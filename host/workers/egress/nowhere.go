package egress

import (
	"context"
	"sync/atomic"

	"openskill/sdk/skill"
)

// Nowhere is the network of a host that permits no requests: it makes none, and tells
// denied of the first 16 attempts of each run.
func Nowhere(denied func(call *skill.Call)) skill.Outgoing { return nowhere(denied) }

type nowhere func(call *skill.Call)

// For implements [skill.Outgoing].
func (denied nowhere) For(call *skill.Call) skill.Fetch {
	var attempts atomic.Int32
	return func(context.Context, []byte) []byte {
		if attempts.Add(1) <= maxRequests {
			denied(call)
		}
		return nil // whoever asked says why there is no answer
	}
}
