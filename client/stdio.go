package client

import (
	"io"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/conn"
)

// writeTimeout limits a POST that is not a call, and the time that the POST of a call outlives it.
const writeTimeout = 10 * time.Second

// A processWire is the connection to a child process.
type processWire struct {
	*conn.Stream
	process *process
}

// wire returns a wire that frames messages on r and w.
func (c *Client) wire(r io.Reader, w io.Writer) *conn.Stream {
	return conn.NewStream(r, w, conn.StreamOptions{
		Framing: c.cfg.framing, MaxMessageBytes: c.cfg.maxMessage,
		TooLarge: "response is larger than %d bytes; raise client.MaxMessageBytes",
	})
}
