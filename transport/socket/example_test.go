package socket_test

import (
	"context"
	"fmt"
	"net"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/socket"
)

// Greeter greets people.
type Greeter struct {
	_ mcpkit.Info `name:"greeter" version:"1.0.0"`
}

// Greet greets somebody by name.
func (*Greeter) Greet(in struct {
	Name string `json:"name"`
}) string {
	return "Hello, " + in.Name + "!"
}

// New serves a listener: a Unix socket, a TCP port or one with TLS.
func ExampleNew() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	served := make(chan error, 1)
	// Ends when ctx does.
	go func() { served <- mcpkit.MustNew(&Greeter{}).Serve(ctx, socket.New(l, nil)) }()

	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		panic(err)
	}
	c, err := client.Dial(ctx, conn)
	if err != nil {
		panic(err)
	}
	fmt.Println(client.Call[string](ctx, c, "greet", map[string]string{"name": "Ann"}))
	c.Close()
	stop()
	fmt.Println(<-served)
	// Output:
	// Hello, Ann! <nil>
	// <nil>
}
