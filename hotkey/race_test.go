//go:build race

package hotkey

const raceFactor = 4
