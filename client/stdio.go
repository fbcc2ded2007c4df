package client

import (
	"io"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/framing"
)

// writeTimeout limits one write to a server that does not read.
const writeTimeout = 10 * time.Second

// A processWire is the connection to a child process.
type processWire struct {
	*framing.Wire
	process *process
}

// wire returns a wire that frames messages on r and w.
func (c *Client) wire(r io.Reader, w io.Writer) *framing.Wire {
	return framing.New(r, w, framing.Options{
		Framing: c.cfg.framing, MaxMessageBytes: c.cfg.maxMessage, Raise: "MaxMessageBytes", WriteTimeout: writeTimeout,
	})
}
