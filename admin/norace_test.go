//go:build !race

package admin

const raceFactor = 1
