package dispatch

import "openskill/sdk/skill"

// limits returns the limits of a call. Callers of run_code and of scripts wrote or chose the program, so they may ask for
// more than the defaults, up to Options.Most; callers of skills can only lower what the manifest says.
func (d *Dispatcher) limits(c *call) skill.Limits {
	l, asked := c.skill.Limits, c.asked
	if c.again != nil && (c.skill.Code || c.script != nil) {
		asked = c.request.Limits
	}
	if asked == (skill.Limits{}) {
		return l.Lower(c.request.Limits)
	}
	most := d.o.Most.Or(l)
	if asked.Timeout = min(asked.Timeout, most.Timeout); asked.Fuel == 0 && asked.Timeout > l.Timeout { // as much work in each second
		asked.Fuel = uint64(min(float64(l.Fuel)*(float64(asked.Timeout)/float64(l.Timeout)), 1<<62))
	}
	return asked.Or(l).Lower(most).Lower(c.request.Limits)
}
