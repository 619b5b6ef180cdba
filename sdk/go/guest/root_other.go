//go:build !wasip1

package guest

// root is where data and work are.
const root = "."
