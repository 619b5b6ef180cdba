//go:build !race

package host

// underRace: see race_test.go.
const underRace = false
