//go:build seededbug

package router

const seededBug = true
