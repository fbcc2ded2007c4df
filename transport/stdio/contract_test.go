package stdio_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"strconv"
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
	for _, test := range []struct {
		name    string
		framing stdio.Framing
		client  func(stream io.ReadWriteCloser, stop func(), done <-chan struct{}) transporttest.Conn
	}{
		{"lines", stdio.Lines, transporttest.Lines},
		{"any framing, lines", stdio.AnyFraming, transporttest.Lines},
		{"headers", stdio.ContentLength, newHeaders},
		{"any framing, headers", stdio.AnyFraming, newHeaders},
	} {
		t.Run(test.name, func(t *testing.T) {
			contract(t, test.framing, test.client)
		})
	}
}

func contract(t *testing.T, framing stdio.Framing, client func(stream io.ReadWriteCloser, stop func(), done <-chan struct{}) transporttest.Conn) {
	transporttest.RunInBubble(t, func(t *testing.T, h transport.Handler) transporttest.Conn {
		in, clientOut := io.Pipe()
		clientIn, out := io.Pipe()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			opts := &stdio.Options{MaxMessageBytes: transporttest.MaxMessageBytes, DrainTimeout: 3 * time.Second, Framing: framing}
			assert.NoError(t, stdio.NewIO(in, out, opts).Serve(ctx, h))
		}()
		return client(pipes{clientIn, clientOut, clientIn, clientOut}, stop, done)
	})
}

// headers is a client that frames messages by header fields.
type headers struct {
	io.ReadWriteCloser
	read *bufio.Reader
	stop func()
	done <-chan struct{}
}

func newHeaders(stream io.ReadWriteCloser, stop func(), done <-chan struct{}) transporttest.Conn {
	return &headers{stream, bufio.NewReader(stream), stop, done}
}

func (h *headers) Send(message []byte) error {
	_, err := fmt.Fprintf(h, "Content-Length: %d\r\n\r\n%s", len(message), message)
	return err
}

func (h *headers) Receive() ([]byte, error) {
	head, err := textproto.NewReader(h.read).ReadMIMEHeader()
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(head.Get("Content-Length"))
	if err != nil {
		return nil, err
	}
	message := make([]byte, n)
	_, err = io.ReadFull(h.read, message)
	return message, err
}

func (h *headers) Stop()                 { h.stop() }
func (h *headers) Done() <-chan struct{} { return h.done }
