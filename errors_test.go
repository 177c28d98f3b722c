package cacherouter_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"cacherouter/backend"
)

// words are those that begin an error line. Where they stand alone they are looked for, not said,
// but for ERROR.
var words = regexp.MustCompile(`^(ERROR|CLIENT_ERROR|SERVER_ERROR)\b`)

// said returns the error lines that stand in the sources of what answers clients.
func said(t *testing.T) map[string]string {
	t.Helper()
	lines := make(map[string]string)
	for _, dir := range []string{"router", "memproto"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%d files, %v", len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING {
					text, _ := strconv.Unquote(s.Value)
					addSaid(lines, text, file)
				}
				return true
			})
		}
	}
	return lines
}

func addSaid(lines map[string]string, text, file string) {
	text = strings.TrimSuffix(text, "\r\n")
	switch {
	case !words.MatchString(text), text == "CLIENT_ERROR", text == "SERVER_ERROR":
	case text == "SERVER_ERROR backend ":
		for f := backend.Failure(1); f < backend.NumFailures; f++ {
			lines[text+f.Error()] = file
		}
	default:
		lines[text] = file
	}
}

var tableRow = regexp.MustCompile("(?m)^\\| `(.*?)`")

// Each error line that the router says is documented, and no other.
func TestErrorLines(t *testing.T) {
	b, err := os.ReadFile("docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]bool)
	for _, row := range tableRow.FindAllStringSubmatch(string(b), -1) {
		line := strings.ReplaceAll(row[1], `\|`, "|")
		if documented[line] {
			t.Errorf("docs/errors.md has %q twice", line)
		}
		documented[line] = true
	}
	all := said(t)
	for line, file := range all {
		if !documented[line] {
			t.Errorf("%s says %q, which is not in docs/errors.md", file, line)
		}
	}
	for line := range documented {
		if all[line] == "" {
			t.Errorf("docs/errors.md has %q, which nobody says", line)
		}
	}
	if len(all) < 30 {
		t.Errorf("only %d lines are found", len(all))
	}
}
