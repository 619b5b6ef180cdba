//go:build !unix

package records_test

import "time"

func processorTime() time.Duration { return 0 }
