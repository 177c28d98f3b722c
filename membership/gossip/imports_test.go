package gossip

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOnlyOneFileKnowsMemberlist keeps the library replaceable.
func TestOnlyOneFileKnowsMemberlist(t *testing.T) {
	var files []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			if i.Path.Value == `"github.com/hashicorp/memberlist"` {
				files = append(files, path)
			}
		}
		return nil
	})
	if want := []string{filepath.Join("..", "gossip", "memberlist.go")}; err != nil || !slices.Equal(files, want) {
		t.Errorf("memberlist is imported by %v, want %v (%v)", files, want, err)
	}
}
