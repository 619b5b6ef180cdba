//go:build !linux

package share

// exchange puts a folder in the place of another one, which goes to aside.
func exchange(folder, to, aside string) error { return exchangeSlowly(folder, to, aside) }
