package versions

// Folder is the name, in the folder of the store, of the one that holds all of a
// tenant's skills and nothing else.
func Folder(tenant string) string { return folderOf(tenant) }
