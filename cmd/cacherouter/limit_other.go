//go:build !unix

package main

import "log/slog"

// raiseDescriptorLimit has no limit to raise here.
func raiseDescriptorLimit(*slog.Logger) {}
