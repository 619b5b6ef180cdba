//go:build !race

package meter_test

// raceDetector says that work takes ten times as long.
const raceDetector = false
