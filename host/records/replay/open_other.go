//go:build !unix

package replay

// nonblock is nothing where a folder has no pipes in it.
const nonblock = 0
