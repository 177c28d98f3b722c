//go:build !unix

package main

import "os"

// upgradeSignal is none that anybody can send.
var upgradeSignal os.Signal = noSignal{}

type noSignal struct{}

func (noSignal) Signal()        {}
func (noSignal) String() string { return "none" }
