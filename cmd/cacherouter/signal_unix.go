//go:build unix

package main

import (
	"os"
	"syscall"
)

// upgradeSignal asks a process to let a new one take its place.
var upgradeSignal os.Signal = syscall.SIGUSR2
