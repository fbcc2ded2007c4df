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
		headers bool
	}{
		{"lines", stdio.Lines, false},
		{"any framing, lines", stdio.AnyFraming, false},
		{"headers", stdio.ContentLength, true},
		{"any framing, headers", stdio.AnyFraming, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			transporttest.RunInBubble(t, func(t *testing.T, h transport.Handler) transporttest.Conn {
				in, clientOut := io.Pipe()
				clientIn, out := io.Pipe()
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					opts := &stdio.Options{MaxMessageBytes: transporttest.MaxMessageBytes, DrainTimeout: 3 * time.Second, Framing: test.framing}
					assert.NoError(t, stdio.NewIO(in, out, opts).Serve(ctx, h))
				}()
				stream := pipes{clientIn, clientOut, clientIn, clientOut}
				return &framedClient{stream, bufio.NewReader(stream), test.headers, stop, done}
			})
		})
	}
}

// A framedClient puts each message on a line, or header fields before it.
type framedClient struct {
	io.ReadWriteCloser
	read    *bufio.Reader
	headers bool
	stop    func()
	done    <-chan struct{}
}

func (f *framedClient) Send(message []byte) (err error) {
	if f.headers {
		_, err = fmt.Fprintf(f, "Content-Length: %d\r\n\r\n%s", len(message), message)
	} else {
		_, err = fmt.Fprintf(f, "%s\n", message)
	}
	return err
}

func (f *framedClient) Receive() ([]byte, error) {
	if !f.headers {
		return f.read.ReadBytes('\n')
	}
	head, err := textproto.NewReader(f.read).ReadMIMEHeader()
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(head.Get("Content-Length"))
	if err != nil {
		return nil, err
	}
	message := make([]byte, n)
	_, err = io.ReadFull(f.read, message)
	return message, err
}

func (f *framedClient) Stop()                 { f.stop() }
func (f *framedClient) Done() <-chan struct{} { return f.done }
