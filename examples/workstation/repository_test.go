package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/examples/internal/rawclient"
	"github.com/mcpkit/mcpkit-go/internal/longtest"
)

// The test only reads this repository.
func TestThisRepository(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("these sources are not in a git repository")
	}
	for _, version := range []string{rawclient.Legacy, rawclient.Modern} {
		t.Run(version, func(t *testing.T) {
			c := overStdio(t, version, root)
			require.Contains(t, c.CallTool("files_read", `{"path":"go.mod"}`).Text(), "module github.com/mcpkit/mcpkit-go\n")
			require.Contains(t, string(c.Request("resources/read", `{"uri":"file:///go.mod"}`).Result), "module github.com/mcpkit/mcpkit-go")

			var found Found
			c.CallInto(&found, "files_search", `{"pattern":"^func newServer\\(","path":"examples/workstation"}`)
			require.Len(t, found.Matches, 1)
			require.Equal(t, "examples/workstation/server.go", found.Matches[0].Path)

			require.Contains(t, c.CallTool("git_log", `{"path":"go.mod","limit":1}`).Text(), `"hash":"`)
			require.Contains(t, c.CallTool("git_show", `{"path":"go.mod"}`).Text(), "module github.com/mcpkit/mcpkit-go\n")
			require.False(t, c.CallTool("git_status", `{}`).IsError)
			require.False(t, c.CallTool("git_diff", `{"revision":"HEAD","path":"go.mod"}`).IsError)

			if !longtest.All() {
				return // what follows runs the go command
			}
			var r Report
			c.CallInto(&r, "go_vet", `{"packages":["./jsonrpc"]}`)
			require.True(t, r.OK, r.Output)
			c.CallInto(&r, "go_test", `{"packages":["./internal/nearest"]}`)
			require.True(t, r.OK, r.Output)
		})
	}
}
