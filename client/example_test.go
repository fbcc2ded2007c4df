package client_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Sums is a server in this process. Programs usually dial a URL or a command line.
type Sums struct {
	_ mcpkit.Info `name:"sums" version:"1.0.0"`
}

type pair struct {
	A int `json:"a"`
	B int `json:"b"`
}

// Add adds two numbers.
func (*Sums) Add(in pair) (int, error) {
	if in.A < 0 || in.B < 0 {
		return 0, mcpkit.Errorf("negative numbers are not for sale")
	}
	return in.A + in.B, nil
}

// Call calls a tool and decodes its output. A failure that the tool itself reports is a *ToolError.
func ExampleCall() {
	ctx := context.Background()
	c, err := client.Dial(ctx, mcpkit.MustNew(&Sums{}))
	if err != nil {
		panic(err)
	}
	defer c.Close()

	sum, err := client.Call[int](ctx, c, "add", pair{A: 19, B: 23})
	fmt.Println(sum, err)

	_, err = client.Call[int](ctx, c, "add", pair{A: -1, B: 1})
	var failed *client.ToolError
	fmt.Println(errors.As(err, &failed), err)
	// Output:
	// 42 <nil>
	// true tool "add": negative numbers are not for sale
}

// Tools yields all tools of the server, from all pages.
func ExampleClient_Tools() {
	ctx := context.Background()
	c, err := client.Dial(ctx, mcpkit.MustNew(&Sums{}))
	if err != nil {
		panic(err)
	}
	defer c.Close()

	for tool, err := range c.Tools(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Println(tool.Name, "-", tool.Description)
	}
	// Output: add - Adds two numbers.
}

// Bakery has a tool that may run as a task.
type Bakery struct {
	_ struct {
		Bake mcpkit.Tool `task:"optional"`
	}
}

// Bake bakes a bread.
func (*Bakery) Bake() string { return "a bread" }

// Start returns a task, whose ID is all that another client needs to ask for the result later.
func ExampleStart() {
	ctx := context.Background()
	srv := mcpkit.MustNew(&Bakery{}, tasks.New())
	defer srv.Close()
	c, err := client.Dial(ctx, srv, client.Tasks())
	if err != nil {
		panic(err)
	}
	defer c.Close()
	task, err := client.Start(ctx, c, "bake", nil)
	if err != nil {
		panic(err)
	}
	id := task.ID() // keep it

	bread, err := client.Wait[string](ctx, c.Task(id))
	fmt.Println(bread, err)
	// Output: a bread <nil>
}
