package stdio_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
	"github.com/mcpkit/mcpkit-go/transport/transporttest"
)

// pipes is the client's end of two pipes.
type pipes struct {
	io.Reader
	io.Writer
	in  io.Closer
	out io.Closer
}

func (p pipes) Close() error { return errors.Join(p.in.Close(), p.out.Close()) }

func TestContract(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, h transport.Handler) transporttest.Conn {
		in, clientOut := io.Pipe()
		clientIn, out := io.Pipe()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			opts := &stdio.Options{MaxMessageBytes: transporttest.MaxMessageBytes, DrainTimeout: time.Second}
			assert.NoError(t, stdio.NewIO(in, out, opts).Serve(ctx, h))
		}()
		return transporttest.Lines(pipes{clientIn, clientOut, clientIn, clientOut}, stop, done)
	})
}
