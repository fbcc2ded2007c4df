package main

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/socket"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
)

func TestUnixSockets(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	dir, err := os.MkdirTemp("", "mcp") // that of the test may be longer than the path of a socket can be
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "desk.sock")
	listening := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	srv := mcpkit.MustNew(&Desk{}, mcpkit.Logger(quiet))
	// Ends with ctx.
	go func() {
		opts := &socket.Options{Stream: stdio.Options{Logger: quiet}, OnListen: func(net.Addr) { close(listening) }}
		over <- srv.Serve(ctx, socket.Listen("unix", path, opts))
	}()
	select {
	case <-listening:
	case err := <-over:
		require.FailNow(t, "the server does not listen", "%v", err)
	}
	for _, target := range []string{"unix:" + path, "unix://" + path} {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			var out, errs bytes.Buffer
			require.Equal(t, exitOK, run(t.Context(), []string{"call", "-output", "text", "-protocol-version", version, target, "count", "to:=2"}, streams{out: &out, err: &errs}), errs.String())
			require.Equal(t, "2\n", out.String())
		}
	}
	stop()
	require.NoError(t, <-over)

	var out, errs bytes.Buffer
	require.Equal(t, exitConnection, run(t.Context(), []string{"list", "unix:" + path}, streams{out: &out, err: &errs}))
	require.Equal(t, "mcpkit list: client: dial unix "+path+": connect: no such file or directory\n", errs.String())
	errs.Reset()
	require.Equal(t, exitUsage, run(t.Context(), []string{"list", "unix:"}, streams{out: &out, err: &errs}))
	require.Equal(t, "mcpkit list: \"unix:\" has no path of a socket; write unix:/path/of/the.sock\n", errs.String())
}
