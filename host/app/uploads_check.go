package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"openskill/host/workers"
	"openskill/sdk/skill"
	"openskill/wasm/check"
)

// moduleChecker checks and compiles modules of strangers for admission: in a
// process of their own where there are workers, so that what it costs is bounded by
// the kernel; else here.
type moduleChecker struct{ host *Host }

// compileTime is what the modules of one upload may take to compile where there are no
// workers, whose processes the kernel holds to it.
const compileTime = 10 * time.Second

// Check implements [admission.Checker].
func (c moduleChecker) Check(ctx context.Context, kind skill.Kind, s *skill.Spec, spent *time.Duration) (json.RawMessage, error) {
	r, err := c.host.runners.Get(kind)
	if err != nil {
		return nil, err
	}
	plan, err := r.Prepare(ctx, s)
	if err != nil {
		return nil, err
	}
	if w := c.host.workers; w != nil {
		return w.modules.Ensure(ctx, &workers.Source{Module: plan.Module, Tenant: s.Tenant, Spent: spent})
	}
	if *spent >= compileTime {
		return nil, spentAll()
	}
	f, err := plan.Module.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	module, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	before, began := *spent, time.Now()
	verdict, err := c.host.engine.Check(module, nil)
	if err == nil {
		waiting := *s
		waiting.Wait = true
		_, err = r.Prepare(ctx, &waiting)
	}
	// One module alone is held to what it is estimated to cost: the clock also counts others' work.
	if *spent += time.Since(began); err == nil && before > 0 && *spent > compileTime {
		err = spentAll()
	}
	report, marshalErr := json.Marshal(verdict)
	if marshalErr != nil {
		report = nil
	}
	if refused, ok := errors.AsType[*check.Error](err); ok {
		err = &skill.Error{
			Op: "host.Check", Code: skill.Code(refused.Code), Message: skill.CleanText(refused.Msg, skill.MaxMessage), Err: err,
		}
	}
	return report, err
}

func spentAll() error {
	return &skill.Error{
		Op: "host.Check", Code: skill.CompileTimeout,
		Message: fmt.Sprintf("compiling the modules of the upload together exceeded %d s; make them smaller, or build them with less inlining (-Os)", int(compileTime/time.Second)),
	}
}
