//go:build !race

package skillsclient_test

// These tests read skills of 16 MiB, which takes a minute with the race detector.

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/skills"
	"github.com/mcpkit/mcpkit-go/ext/skills/skillsclient"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// A file may be as large as a skill, and be binary, on every transport.
func TestTheLargestFilesAreRead(t *testing.T) {
	large := make([]byte, 16<<20-len(main))
	for i := range large {
		large[i] = byte(i * 7)
	}
	srv, err := mcpkit.New(nil, skills.FS(fstest.MapFS{"pdf/SKILL.md": {Data: []byte(main)}, "pdf/large.bin": {Data: large}}))
	require.NoError(t, err)
	handler := streamable.NewHandler(srv, nil)
	web := httptest.NewServer(handler)
	defer web.Close()
	defer handler.Close()
	near, far := net.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	// Ends with ctx.
	go func() { ended <- srv.Serve(ctx, stdio.NewIO(far, far, nil)) }()
	for _, target := range []any{web.URL, io.ReadWriteCloser(near)} {
		c, err := client.Dial(t.Context(), target, client.MaxMessageBytes(32<<20), client.Timeout(0))
		require.NoError(t, err)
		s, err := skillsclient.Get(t.Context(), c, "skill://pdf/SKILL.md")
		require.NoError(t, err)
		text, err := s.Read(t.Context(), "large.bin")
		require.NoError(t, err)
		require.True(t, bytes.Equal(large, text))
		require.NoError(t, c.Close())
	}
	stop()
	<-ended
}
