package natsfleet_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/natsfleet/natsserver"
)

func TestURLsOpenEngines(t *testing.T) {
	server, err := natsserver.Start(t.Context(), natsserver.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	defer server.Close()
	e, err := fleet.Open(t.Context(), server.URL()+"?prefix=test&memory=true&replicas=1&maxbytes=1000000")
	require.NoError(t, err)
	require.NoError(t, e.Ping(t.Context()))
	require.NoError(t, e.Close())
}

func TestWrongURLsAreRefusedWithoutTheirPassword(t *testing.T) {
	for address, want := range map[string]string{
		"nats://u:geheim@host:4222?replicas=x": `replicas is "x"`,
		"nats://u:geheim@host:4222?memory=2":   `memory is "2"`,
		"nats://u:geheim@host:4222?size=2":     `the parameter "size" is unknown`,
		"nats://u:geheim@host:x":               "the URL",
	} {
		_, err := fleet.Open(t.Context(), address)
		require.ErrorContains(t, err, want)
		require.False(t, strings.Contains(err.Error(), "geheim"), err.Error())
	}
}
