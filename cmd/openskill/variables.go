package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"openskill/host/dispatch/allow"
	"openskill/internal/cliflag"
)

// variables are the flags --env and --for: a host belongs to the variable before it.
type variables struct{ list []allow.Variable }

// flags adds --env and --for; what says whom a variable is given to.
func (v *variables) flags(f *pflag.FlagSet, what string) {
	f.Var(cliflag.Each("NAME[=VALUE]", v.add), "env", what+", without VALUE that of this environment; may repeat")
	f.Var(cliflag.Each("HOST", v.place), "for", "send the value of the --env before it to HOST only; the script has a placeholder; may repeat")
}

func (v *variables) add(s string) error {
	name, value, given := strings.Cut(s, "=")
	if !given {
		value, given = os.LookupEnv(name)
	}
	made := allow.Variable{Name: name}
	if given {
		made.Value = &value
	}
	v.list = append(slices.DeleteFunc(v.list, func(o allow.Variable) bool { return o.Name == name }), made) // the last one counts
	return nil
}

func (v *variables) place(s string) error {
	if len(v.list) == 0 {
		return errors.New("give it after the --env that it is for")
	}
	place, err := allow.ParsePlace(s)
	if err != nil {
		return fmt.Errorf("%s", plainMessage(err))
	}
	last := &v.list[len(v.list)-1]
	last.For = append(last.For, place)
	return nil
}
