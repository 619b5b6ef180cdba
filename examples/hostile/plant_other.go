//go:build !unix

package hostile

func plantSpecials(string, string) {}
