package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

const modulePath = "github.com/mcpkit/mcpkit-go"

// moduleVersion returns the version of this library in the program, with the commit if the program
// was built from a clone.
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
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && info.Main.Path == modulePath && !strings.Contains(version, s.Value[:min(12, len(s.Value))]) {
			version += " " + s.Value[:min(12, len(s.Value))]
		}
	}
	return version
}

func versionCommand(std streams) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of mcpkit, of Go and of the protocol",
		GroupID: groupSetup,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintf(std.out, "mcpkit %s\n%s %s/%s\n", moduleVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			fmt.Fprintf(std.out, "MCP %s\n", known())
			return nil
		},
	}
}
