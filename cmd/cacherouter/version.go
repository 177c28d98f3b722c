package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set when a release is linked; see scripts/release.sh.
var version string

type versionCmd struct{}

// Run prints which program this is.
func (versionCmd) Run(s streams) error {
	fmt.Fprintln(s.out, versionLine())
	return nil
}

// versionLine returns the version, the commit it was built from if that is known, and what built it.
func versionLine() string {
	line := "cacherouter " + cmp.Or(version, "development")
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				line += ", commit " + s.Value[:min(12, len(s.Value))]
			case s.Key == "vcs.modified" && s.Value == "true":
				line += " and changes"
			}
		}
	}
	return line + fmt.Sprintf(", %s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
