package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"

	"cacherouter/fresh"
)

// keyring keeps the keys of the gossip, which all pools share, as their file says. A nil one has
// none.
type keyring struct {
	file *fresh.Value[[][]byte]
	log  *slog.Logger

	mu    sync.Mutex
	inUse [][]byte // guarded by mu
}

// keyring returns the keyring of the configuration, nil if it has none.
func (c *config) keyring(log *slog.Logger) (*keyring, error) {
	if c.Gossip.Keyring == "" {
		return nil, nil
	}
	file, err := fresh.New(log, c.Gossip.keys, c.Gossip.Keyring)
	if err != nil {
		return nil, badField(err, "gossip", "keyring")
	}
	return &keyring{file: file, log: log, inUse: file.Get()}, nil
}

// rotate gives the keys to the gossip if their file has changed.
func (k *keyring) rotate(set func(keys [][]byte) error) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	next := k.file.Get()
	if slices.EqualFunc(k.inUse, next, slices.Equal[[]byte]) {
		return
	}
	k.inUse = next
	if err := set(next); err != nil {
		k.log.Error("gossip keys not changed", "err", err)
		return
	}
	k.log.Info("gossip keys changed", "keys", len(next))
}

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
