package main

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"

	"cacherouter/handoff"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
)

// giveActivated adds the sockets that systemd has opened for this process, if any.
func giveActivated(to *handoff.Sockets) error {
	for _, f := range activation.Files(true) {
		if err := to.Give("", "", f); err != nil {
			return fmt.Errorf("socket activation: %w", err)
		}
	}
	return nil
}

// notify tells systemd that this process is ready, and which it is: another one than it started
// after an upgrade. Without systemd it does nothing.
func notify(log *slog.Logger) {
	state := fmt.Sprintf("MAINPID=%d\n%s", os.Getpid(), daemon.SdNotifyReady)
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd does not know that this process is ready", "err", err)
	}
}

// programPath returns where the program of this process is, so that what is put in its place can
// be started later; empty if that cannot be told.
func programPath() string {
	path, err := exec.LookPath(os.Args[0])
	if err != nil {
		return ""
	}
	if path, err = filepath.Abs(path); err != nil {
		return ""
	}
	return path
}
