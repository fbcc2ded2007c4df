package main

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
)

func TestUnixSockets(t *testing.T) {
	dir, err := os.MkdirTemp("", "mcp") // that of the test may be longer than the path of a socket can be
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "desk.sock")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	srv := mcpkit.MustNew(&Desk{}, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	// Ends when the listener is closed and the clients have disconnected.
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { _ = srv.Serve(t.Context(), stdio.NewIO(conn, conn, nil)) })
		}
	})
	for _, target := range []string{"unix:" + path, "unix://" + path} {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			var out, errs bytes.Buffer
			require.Equal(t, exitOK, run(t.Context(), []string{"call", "--protocol-version", version, target, "count", "to:=2"}, streams{out: &out, err: &errs}), errs.String())
			require.Equal(t, "2\n", out.String())
		}
	}
	require.NoError(t, l.Close())
	open.Wait()

	var out, errs bytes.Buffer
	require.Equal(t, exitConnection, run(t.Context(), []string{"list", "unix:" + path}, streams{out: &out, err: &errs}))
	require.Equal(t, "mcpkit list: client: dial unix "+path+": connect: no such file or directory\n", errs.String())
	errs.Reset()
	require.Equal(t, exitUsage, run(t.Context(), []string{"list", "unix:"}, streams{out: &out, err: &errs}))
	require.Equal(t, "mcpkit list: \"unix:\" has no path of a socket; write unix:/path/of/the.sock\n", errs.String())
}
