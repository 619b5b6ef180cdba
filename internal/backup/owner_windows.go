package backup

// keepOwner does nothing: files have the owner that their folder gives them.
func keepOwner(string, string) error { return nil }
