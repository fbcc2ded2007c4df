package message_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/message"
)

// docs:begin conn

// frames carries messages with their length before each, as four bytes.
type frames struct {
	net.Conn
	in *bufio.Reader
}

func newFrames(c net.Conn) *frames { return &frames{c, bufio.NewReader(c)} }

func (f *frames) ReadMessage() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(f.in, head[:]); err != nil {
		return nil, err // io.EOF between two messages is the end
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > 4<<20 {
		return nil, fmt.Errorf("a message of %d bytes", size)
	}
	message := make([]byte, size)
	_, err := io.ReadFull(f.in, message)
	return message, err
}

func (f *frames) WriteMessage(message []byte) error {
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(message)))
	_, err := f.Write(append(frame, message...))
	return err
}

// docs:end conn

// docs:begin server

// Listen serves everybody who connects to l.
func Listen(l net.Listener) transport.Transport {
	return message.Listen(l, func(c net.Conn) message.Conn { return newFrames(c) }, nil)
}

// docs:end server

// docs:begin client

// Server is the server at addr.
func Server(addr string) client.Target {
	return client.Messages(func(ctx context.Context) (message.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		return newFrames(conn), nil
	})
}

// docs:end client

// docs:begin over

// serveClock serves the clock to everybody who connects to l, until the process gets a signal.
func serveClock(l net.Listener) error {
	return mcpkit.Serve(&Clock{}, mcpkit.Over(Listen(l)))
}

// docs:end over

var _ = serveClock // a guide shows it

// Clock tells the time.
type Clock struct{}

// Now tells the time.
func (Clock) Now() string { return "noon" }

func Example() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error, 1)
	srv := mcpkit.MustNew(&Clock{})
	go func() { over <- srv.Serve(ctx, Listen(l)) }()

	c, err := client.Dial(ctx, Server(l.Addr().String()))
	if err != nil {
		panic(err)
	}
	fmt.Println(client.Call[string](ctx, c, "now", nil))
	fmt.Println(c.Version(), c.Close())
	stop()
	fmt.Println(<-over)
	// Output:
	// noon <nil>
	// 2026-07-28 <nil>
	// <nil>
}
