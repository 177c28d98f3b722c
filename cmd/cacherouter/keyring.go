package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
)

// readKeyring reads keys for the gossip, one a line in base64. Empty lines, and lines that
// begin with #, are ignored.
func readKeyring(file string) ([][]byte, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read keyring: %w", err)
	}
	var keys [][]byte
	lines := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(string(line)) // what is wrong with it is no secret, the line is
		if err != nil || len(key) != 16 && len(key) != 24 && len(key) != 32 {
			return nil, fmt.Errorf("%s: line %d: want base64 of 16, 24 or 32 bytes", file, n)
		}
		keys = append(keys, key)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("cannot read keyring: %w", err)
	}
	if len(keys) == 0 {
		return nil, errors.New("the keyring " + file + " has no keys: want one a line")
	}
	return keys, nil
}
