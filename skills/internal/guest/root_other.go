//go:build !wasip1

package guest

// Root is put before data/… and work/… to open a file.
const Root = "./"
