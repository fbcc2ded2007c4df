package main

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

func TestWebSockets(t *testing.T) {
	srv := mcpkit.MustNew(&Desk{}, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	h := websocket.NewHandler(srv, &websocket.Options{Logger: slog.New(slog.DiscardHandler)})
	web := httptest.NewServer(h)
	defer func() { h.Close(); web.Close(); require.NoError(t, srv.Close()) }()
	url := strings.Replace(web.URL, "http", "ws", 1)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		var out, errs bytes.Buffer
		require.Equal(t, exitOK, run(t.Context(), []string{"call", "--protocol-version", version, url, "count", "to:=2"}, streams{out: &out, err: &errs}), errs.String())
		require.Equal(t, "2\n", out.String())
	}
	var out, errs bytes.Buffer
	require.Equal(t, exitConnection, run(t.Context(), []string{"list", "--login", "--tokens", t.TempDir(), url}, streams{out: &out, err: &errs}))
	require.Contains(t, errs.String(), "--login and --logout need a server at an http or https URL")
}
