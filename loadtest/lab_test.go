//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLabCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "svg")
	var out bytes.Buffer
	if err := (&labRunCommand{Name: "modulo", SVG: dir}).run(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "91 %") || !strings.Contains(out.String(), "1 experiments, nothing differs") {
		t.Errorf("printed:\n%s", out.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "modulo.svg")); err != nil {
		t.Error(err)
	}
	err := (&labRunCommand{Name: "nonsense"}).run(&out)
	if err == nil || !strings.Contains(err.Error(), "lab list has the names") {
		t.Errorf("an unknown name: %v", err)
	}
}
