package client

import (
	"io"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/framing"
)

// writeTimeout is how long one write to a server may take that does not read.
const writeTimeout = 10 * time.Second

// A processWire is the connection with a child process.
type processWire struct {
	*framing.Wire
	process *process
}

// wire frames messages on the streams of a connection.
func (c *Client) wire(r io.Reader, w io.Writer) *framing.Wire {
	return framing.New(r, w, framing.Options{
		Framing: c.cfg.framing, MaxMessageBytes: c.cfg.maxMessage, Raise: "MaxMessageBytes", WriteTimeout: writeTimeout,
	})
}
