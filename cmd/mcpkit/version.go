package main

import (
	"cmp"
	"runtime/debug"
)

const modulePath = "github.com/mcpkit/mcpkit-go"

// moduleVersion returns the version of this library, of which the program is part.
func moduleVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return cmp.Or(info.Main.Version, "(devel)")
}
