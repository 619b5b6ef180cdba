//go:build !race

package python_test

// underRace: see race_test.go.
const underRace = false
