//go:build unix

package main

import (
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

func TestTerminationInterruptsACall(t *testing.T) {
	d := &Desk{waiting: make(chan struct{})}
	srv := mcpkit.MustNew(d, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	h := streamable.NewHandler(srv, nil)
	web := httptest.NewServer(h)
	defer func() { h.Close(); web.Close(); require.NoError(t, srv.Close()) }()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, asCommand, "call", web.URL, "wait")
	require.NoError(t, cmd.Start())
	<-d.waiting
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, cmd.Wait())
	require.Equal(t, exitInterrupted, cmd.ProcessState.ExitCode())
}
