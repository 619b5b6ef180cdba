package cli

// Protection is one of the things that keep a script from harm to others, and
// whether it holds on this machine.
type Protection struct {
	Name   string `json:"name"`
	Holds  bool   `json:"holds"`
	Detail string `json:"detail"` // by what, or what is missing
}

// Protections tells what holds on this machine, for the operator (doctor). It
// starts the interpreter if that was not done yet. The error, a *skill.Error, is
// the one of Prepare when no script can run at all.
func (r *Runner) Protections() ([]Protection, error) {
	s, err := r.setup()
	if err != nil {
		return nil, err
	}
	return s.guard.protections(), nil
}
