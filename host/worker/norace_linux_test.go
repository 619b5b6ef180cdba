//go:build !race && linux

package worker_test

const underRace = false
