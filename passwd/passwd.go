// Package passwd checks users and passwords against a file in the format of memcached's
// option -Y: lines of user:password. It is read again when it changes.
package passwd

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"os"

	"cacherouter/fresh"
)

// File is a password file. Any goroutine may use it.
type File struct {
	entries *fresh.Value[[]entry]
}

// entry holds digests, so that comparing takes the same time whatever the lengths.
type entry struct{ user, password [sha256.Size]byte }

// Open reads a password file. The error names the line that is wrong.
func Open(name string, log *slog.Logger) (*File, error) {
	v, err := fresh.New(log, func() ([]entry, error) { return load(name) }, name)
	if err != nil {
		return nil, err
	}
	return &File{v}, nil
}

func load(name string) ([]entry, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read password file: %w", err)
	}
	var all []entry
	lines := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimRight(lines.Bytes(), "\r")
		if len(line) == 0 {
			continue
		}
		user, password, ok := bytes.Cut(line, []byte(":"))
		if !ok || len(user) == 0 {
			return nil, fmt.Errorf("%s: line %d: want user:password", name, n)
		}
		all = append(all, entry{sha256.Sum256(user), sha256.Sum256(password)})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no users: want lines of user:password", name)
	}
	return all, lines.Err()
}

// Check reports whether the file has the user with the password. It looks at every entry
// in full, so that the time it takes tells nothing.
func (f *File) Check(user, password []byte) bool {
	u, p := sha256.Sum256(user), sha256.Sum256(password)
	found := 0
	for _, e := range f.entries.Get() {
		found |= subtle.ConstantTimeCompare(u[:], e.user[:]) & subtle.ConstantTimeCompare(p[:], e.password[:])
	}
	return found == 1
}

// First returns the first user of a password file and its password, as credentials of
// our own.
func First(name string) (user, password string, err error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return "", "", fmt.Errorf("cannot read password file: %w", err)
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	u, p, ok := bytes.Cut(bytes.TrimRight(line, "\r"), []byte(":"))
	if !ok || len(u) == 0 || bytes.ContainsAny(line, " ") {
		return "", "", fmt.Errorf("%s: line 1: want user:password without spaces", name)
	}
	return string(u), string(p), nil
}
