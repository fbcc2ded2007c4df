// Command tour calls a tool of a server in the same process, and prints what callers see: the tool,
// the mistakes in their arguments, and a result.
//
//	go run ./examples/tour
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Teahouse brews tea.
type Teahouse struct{}

// Order says what to brew.
type Order struct {
	// The kind of tea.
	Tea string `json:"tea" validate:"oneof=green black mint"`
	// How many cups.
	Cups int `json:"cups,omitempty" default:"1" validate:"min=1,max=4"`
}

// Brew brews tea, and says what it costs.
func (*Teahouse) Brew(in Order) string {
	return fmt.Sprintf("Here you are: %d cups of %s tea. That is %.2f euros.", in.Cups, in.Tea, 2.5*float64(in.Cups))
}

func main() {
	if err := tour(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// tour calls the tool with wrong arguments and with right ones.
func tour(ctx context.Context, out io.Writer) error {
	srv, err := mcpkit.New(&Teahouse{})
	if err != nil {
		return err
	}
	c, err := client.Dial(ctx, srv)
	if err != nil {
		return err
	}
	defer c.Close()
	for tool, err := range c.Tools(ctx) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "The server has the tool %s: %s\n", tool.Name, tool.Description)
	}
	for _, args := range []string{`{"tea": "gren", "cups": 9, "sugar": true}`, `{"tea": "green", "cups": 2}`} {
		fmt.Fprintf(out, "\nbrew %s\n", args)
		answer, err := client.Call[string](ctx, c, "brew", json.RawMessage(args))
		if mistakes, ok := errors.AsType[*client.ToolError](err); ok {
			fmt.Fprintln(out, mistakes)
			continue
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(out, answer)
	}
	return nil
}
