package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The guide's commands work, and its configurations are right.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/moving.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../docs/examples/moving")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	ran := 0
	for i, block := range strings.Split(string(guide), "```") {
		if text, yaml := strings.CutPrefix(block, "yaml\n"); yaml {
			if _, err := loadConfig(writeConfig(t, text)); err != nil {
				t.Error(err)
			}
		} else if i%2 == 1 {
			for _, line := range strings.Split(strings.TrimSpace(block), "\n") {
				runGuide(t, line)
				ran++
			}
		}
	}
	if ran < 8 {
		t.Errorf("only %d commands", ran)
	}
}

// runGuide runs a line of the guide.
func runGuide(t *testing.T, line string) {
	t.Helper()
	text, to, _ := strings.Cut(line, " > ")
	args := strings.Fields(text)
	if args[0] != "cacherouter" {
		t.Fatalf("%q is no command", line)
	}
	if args[1] == "import" {
		args = append(args, "--sample=100")
	}
	status, out, errs := command(args[1:]...)
	if status != 0 {
		t.Errorf("%s: status %d: %s", line, status, errs)
	}
	if to != "" {
		if err := os.WriteFile(filepath.Clean(to), []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
