package mcpkit_test

import (
	"context"
	"fmt"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// exampleNotes keeps notes.
type exampleNotes struct {
	_ mcpkit.Info `name:"notes" version:"1.0.0"`
	_ struct {
		Note mcpkit.Resource `uri:"note://{id}" mime:"text/plain" desc:"A note."`
	}
	notes map[string]string
}

// Add keeps a note.
func (n *exampleNotes) Add(in struct {
	ID   string `json:"id" validate:"min=1"`
	Text string `json:"text"`
}) (string, error) {
	if _, ok := n.notes[in.ID]; ok {
		return "", mcpkit.Errorf("there is a note %q already", in.ID)
	}
	n.notes[in.ID] = in.Text
	return "kept " + in.ID, nil
}

// Note returns a note.
func (n *exampleNotes) Note(id string) (string, error) {
	text, ok := n.notes[id]
	if !ok {
		return "", mcpkit.ErrNotFound
	}
	return text, nil
}

// Methods become tools; a field of the annotation block makes one a resource. The errors of tools
// that Errorf makes are for models.
func Example() {
	ctx := context.Background()
	srv := mcpkit.MustNew(&exampleNotes{notes: map[string]string{}})
	c, err := client.Dial(ctx, srv) // a program serves srv over a transport instead
	if err != nil {
		panic(err)
	}
	defer c.Close()

	for range 2 {
		text, err := client.Call[string](ctx, c, "add", map[string]string{"id": "tea", "text": "Green tea"})
		fmt.Println(text, err)
	}
	note, err := c.ReadResource(ctx, "note://tea")
	fmt.Println(*note.Contents[0].Text, err)
	// Output:
	// kept tea <nil>
	//  tool "add": there is a note "tea" already
	// Green tea <nil>
}

// exampleShop sells things.
type exampleShop struct {
	_ mcpkit.Info `name:"shop" version:"1.0.0"`
}

// Buy buys something, after the user has agreed.
func (*exampleShop) Buy(ctx context.Context) (string, error) {
	order, err := mcpkit.Once(ctx, "order", func() (string, error) {
		fmt.Println("reserving")
		return "A1", nil
	})
	if err != nil {
		return "", err
	}
	ok, err := mcpkit.Confirm(ctx, "Buy it?")
	if err != nil || !ok {
		return "", err
	}
	return "bought with order " + order, nil
}

// agreeing is a client whose user agrees to everything.
type agreeing struct{}

func (agreeing) Elicit(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	return &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: []byte(`{"confirm": true}`)}, nil
}

// In version 2026-07-28 the method runs again when the answer is there. What is in Once does not.
func ExampleOnce() {
	ctx := context.Background()
	c, err := client.Dial(ctx, mcpkit.MustNew(&exampleShop{}), client.Handlers(agreeing{}))
	if err != nil {
		panic(err)
	}
	defer c.Close()
	fmt.Println(client.Call[string](ctx, c, "buy", nil))
	// Output:
	// reserving
	// bought with order A1 <nil>
}

// Functions become tools with a builder.
func ExampleNewTool() {
	add := mcpkit.NewTool("add", func(_ context.Context, in struct {
		A int `json:"a"`
		B int `json:"b"`
	}) (int, error) {
		return in.A + in.B, nil
	}).Desc("Adds two numbers.").Hints("readonly")
	srv := mcpkit.MustNew(nil, mcpkit.Name("sums", "1.0.0"))
	if err := srv.Add(add); err != nil {
		panic(err)
	}
	ctx := context.Background()
	c, err := client.Dial(ctx, srv)
	if err != nil {
		panic(err)
	}
	defer c.Close()
	fmt.Println(client.Call[int](ctx, c, "add", map[string]int{"a": 2, "b": 3}))
	// Output: 5 <nil>
}
