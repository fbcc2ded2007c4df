package proxy_test

import (
	"context"
	"fmt"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/proxy"
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

// A remote server becomes a part of this one, under a prefix.
func ExampleNew() {
	ctx := context.Background()
	remote := mcpkit.MustNew(&Greeter{}) // a URL or a command line in a program
	greeter, err := proxy.New(remote)
	if err != nil {
		panic(err)
	}
	gateway := mcpkit.MustNew(nil, mcpkit.Name("gateway", "1.0.0"))
	if err := gateway.Mount("greeter", greeter); err != nil {
		panic(err)
	}
	if err := gateway.Start(ctx); err != nil {
		panic(err)
	}
	defer gateway.Close()
	c, err := client.Dial(ctx, gateway)
	if err != nil {
		panic(err)
	}
	defer c.Close()
	fmt.Println(client.Call[string](ctx, c, "greeter_greet", map[string]string{"name": "Ann"}))
	// Output: Hello, Ann! <nil>
}

// Callers stay connected while the remote server is replaced.
func ExampleSwitch() {
	ctx := context.Background()
	first := mcpkit.MustNew(&Greeter{}) // a URL or a command line in a program
	second := mcpkit.MustNew(&Clock{})
	var sw proxy.Switch
	srv, err := proxy.New(&sw)
	if err != nil {
		panic(err)
	}
	if err := srv.Start(ctx); err != nil {
		panic(err)
	}
	if err := sw.Connect(ctx, first); err != nil { // before the first call, and for each replacement
		panic(err)
	}
	defer srv.Close()
	c, err := client.Dial(ctx, srv)
	if err != nil {
		panic(err)
	}
	defer c.Close()
	fmt.Println(client.Call[string](ctx, c, "greet", map[string]string{"name": "Ann"}))
	if err := sw.Connect(ctx, second); err != nil {
		panic(err)
	}
	fmt.Println(client.Call[string](ctx, c, "now", nil))
	// Output:
	// Hello, Ann! <nil>
	// noon <nil>
}

// Clock tells the time.
type Clock struct{}

// Now tells the time.
func (*Clock) Now() string { return "noon" }
