//go:build race

package admin

const raceFactor = 10
