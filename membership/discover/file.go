package discover

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// File is a list in a file, one server a line as [Parse] reads it. Empty lines and what
// follows a # are ignored.
type File struct {
	Path string
}

// maxFile is the size in bytes of the largest file that is read.
const maxFile = 4 << 20

// Look reads the file. One bad line makes the whole file bad: half a list is no list.
func (f File) Look(context.Context) (Answer, error) {
	if fi, err := os.Stat(f.Path); err == nil && fi.Size() > maxFile {
		return Answer{}, fmt.Errorf("cannot read %s: larger than %d bytes", f.Path, maxFile)
	}
	b, err := os.ReadFile(f.Path)
	if err != nil {
		return Answer{}, fmt.Errorf("cannot read the list of servers: %w", err)
	}
	var a Answer
	for i, line := range strings.Split(string(b), "\n") {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		s, err := Parse(line)
		if err != nil {
			return Answer{}, fmt.Errorf("%s:%d: %w", f.Path, i+1, err)
		}
		a.Servers = append(a.Servers, s)
	}
	return a, nil
}
