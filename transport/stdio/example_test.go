package stdio_test

import (
	"context"
	"fmt"
	"io"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
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

// New(nil) serves standard input and output. NewIO serves other streams: here a pipe to a client in
// this process.
func ExampleNewIO() {
	ctx := context.Background()
	fromClient, requests := io.Pipe()
	fromServer, responses := io.Pipe()
	served := make(chan error, 1)
	// Ends when the client closes its end.
	go func() { served <- mcpkit.MustNew(&Greeter{}).Serve(ctx, stdio.NewIO(fromClient, responses, nil)) }()

	c, err := client.Dial(ctx, struct {
		io.Reader
		io.WriteCloser
	}{fromServer, requests})
	if err != nil {
		panic(err)
	}
	fmt.Println(client.Call[string](ctx, c, "greet", map[string]string{"name": "Ann"}))
	c.Close()
	fmt.Println(<-served)
	// Output:
	// Hello, Ann! <nil>
	// <nil>
}
