package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"openskill/host/workers"
	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/check"
)

// moduleChecker checks and compiles modules of strangers for admission: in a
// process of their own where there are workers, so that what it costs is bounded by
// the kernel; else here.
type moduleChecker struct{ host *Host }

// compileTime is what the modules of one upload may take to compile where there are no
// workers, whose processes the kernel holds to it.
const compileTime = 10 * time.Second

// Check implements admission.Checker.
func (c moduleChecker) Check(ctx context.Context, owner string, module []byte, spent *time.Duration) (json.RawMessage, error) {
	if w := c.host.workers; w != nil {
		return w.modules.Ensure(ctx, wasm.Digest(module), &workers.Source{
			Tenant: owner, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(module)), nil },
			Spent: spent,
		})
	}
	if *spent >= compileTime {
		return nil, spentAll()
	}
	before, began := *spent, time.Now()
	verdict, err := c.host.engine.Check(module, nil)
	if err == nil {
		_, err = c.host.engine.Compile(ctx, module, nil)
	}
	// One module alone is held to what it is estimated to cost: the clock also counts others' work.
	if *spent += time.Since(began); err == nil && before > 0 && *spent > compileTime {
		err = spentAll()
	}
	report, marshalErr := json.Marshal(verdict)
	if marshalErr != nil {
		report = nil
	}
	var refused *check.Error
	if errors.As(err, &refused) {
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
