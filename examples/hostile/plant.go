package hostile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// What [Plant] puts into a data folder and beside it.
const (
	Granted     = "granted.txt" // what every guest that is granted data may read
	GrantedText = "granted: anyone may read this\n"
	Secret      = "secret.txt" // beside the data folder
	SecretText  = "secret: nobody may read this\n"
	Swapped     = "swapped.txt" // now a file, now a link to the secret
)

// Links are the names of the symbolic links in a planted folder. All of them lead
// out, into a loop, or nowhere.
func Links() []string {
	return []string{"relative", "absolute", "folder", "folder/" + Secret, "device", "environment", chained(0), "dangling", "loop", "sub/up"}
}

// Specials are the names of what is neither a folder nor a regular file of one name.
func Specials() []string { return []string{"fifo", "socket", "hardlink", "devicenode"} }

// Plant fills an empty folder with what a data folder may hold by malice of another
// local user, and puts a secret beside it. It uses dir and the folder that holds it;
// both should be temporary. What this system or user cannot make is left out.
func Plant(dir string) error {
	secret := filepath.Join(filepath.Dir(dir), Secret)
	err := errors.Join(
		os.WriteFile(secret, []byte(SecretText), 0o600),
		os.WriteFile(filepath.Join(dir, Granted), []byte(GrantedText), 0o600),
		os.WriteFile(filepath.Join(dir, Swapped), []byte(GrantedText), 0o600),
		os.MkdirAll(filepath.Join(dir, "sub", "deep"), 0o700),
	)
	links := map[string]string{
		"relative": filepath.Join("..", Secret), "absolute": secret, "folder": filepath.Dir(dir),
		"device": "/dev/zero", "environment": "/proc/self/environ", "dangling": "/nowhere/at/all", "loop": "loop",
		filepath.Join("sub", "up"): filepath.Join("..", "..", Secret),
		chained(chain - 1):         secret,
	}
	for i := range chain - 1 {
		links[chained(i)] = chained(i + 1)
	}
	for name, to := range links {
		err = errors.Join(err, os.Symlink(to, filepath.Join(dir, name)))
	}
	if err != nil {
		return err
	}
	plantSpecials(dir, secret)
	return nil
}

// swapping swaps a file for a link to the secret and back until ctx ends; then it is
// the file that it was.
func swapping(ctx context.Context, dir string) {
	name, link, file := filepath.Join(dir, Swapped), filepath.Join(dir, ".link"), filepath.Join(dir, ".file")
	for ctx.Err() == nil {
		_ = os.Symlink(filepath.Join("..", Secret), link) // where it cannot be made nothing is swapped
		_ = os.Rename(link, name)
		_ = os.WriteFile(file, []byte(GrantedText), 0o600)
		_ = os.Rename(file, name)
	}
}
