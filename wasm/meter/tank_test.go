package meter_test

import (
	"errors"
	"math"
	"testing"

	"openskill/wasm/meter"
)

// TestTankEnds holds that a tank never hands out more than its budget, to a guest that asks in
// pieces of any size and to host functions beside it.
func TestTankEnds(t *testing.T) {
	for _, slice := range []uint64{1, 7, 100, 1000} {
		for _, need := range []int64{0, 1, 99, 1_000_000, 1 << 40} {
			tank := &meter.Tank{Budget: 100, Slice: slice}
			fuel, charged := int64(-1), uint64(0)
			for range 200 {
				if tank.Charge(3) == nil {
					charged += 3
				}
				next, err := tank.Refuel(fuel, need)
				if errors.Is(err, meter.ErrFuel) {
					fuel = math.MinInt64
					break
				}
				if err != nil || next < max(need, 0) {
					t.Fatalf("slice %d, need %d: %d, %v", slice, need, next, err)
				}
				fuel = -1 // all of it is used, and one more
			}
			if fuel != math.MinInt64 || tank.Granted+charged > 100 {
				t.Errorf("slice %d, need %d: %d units are handed out and %d charged, of 100", slice, need, tank.Granted, charged)
			}
			if err := tank.Charge(math.MaxUint64); !errors.Is(err, meter.ErrFuel) {
				t.Errorf("the most there can be is charged: %v", err)
			}
		}
	}
}
