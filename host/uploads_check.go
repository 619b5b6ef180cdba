package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"openskill/host/worker"
	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/check"
)

// moduleChecker checks and compiles modules of strangers for admission: in a
// process of their own where there are workers, so that what it costs is bounded by
// the kernel; else here.
type moduleChecker struct{ host *Host }

// Check implements upload.Checker.
func (c moduleChecker) Check(ctx context.Context, module []byte) (json.RawMessage, error) {
	if w := c.host.workers; w != nil {
		return w.modules.Ensure(ctx, wasm.Digest(module), &worker.Source{
			Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(module)), nil },
		})
	}
	verdict, err := c.host.engine.Check(module, nil)
	if err == nil {
		_, err = c.host.engine.Compile(ctx, module, nil)
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
