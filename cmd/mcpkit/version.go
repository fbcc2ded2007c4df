package main

import (
	"runtime/debug"
)

const modulePath = "github.com/mcpkit/mcpkit-go"

// moduleVersion returns the version of this library in the program.
func moduleVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := "(devel)"
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == modulePath && m.Version != "" {
			version = m.Version
		}
	}
	return version
}
