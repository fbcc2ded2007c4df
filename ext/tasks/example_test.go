package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// docs:begin durable

// Hotels books rooms.
type Hotels struct {
	_ struct {
		Book mcpkit.Tool `task:"optional,durable"`
	}
}

// Book books a room when somebody has agreed, perhaps days later.
func (h *Hotels) Book(ctx context.Context, in struct {
	City string `json:"city"`
}) (string, error) {
	room, err := mcpkit.Once(ctx, "room", func() (int, error) {
		return h.hold(in.City, mcpkit.OnceKey(ctx, "room"))
	})
	if err != nil {
		return "", err
	}
	if ok, err := mcpkit.Confirm(ctx, fmt.Sprintf("Take room %d?", room)); err != nil || !ok {
		return "not booked", err
	}
	return fmt.Sprintf("room %d in %s", room, in.City), nil
}

// docs:end durable

// hold reserves a room. A request with the same key reserves no second one.
func (h *Hotels) hold(city, key string) (room int, err error) { return 12, nil }

func Example() {
	srv := mcpkit.MustNew(&Hotels{}, tasks.New())
	defer srv.Close()
	ctx := context.Background()

	// Clients that do not support tasks call it as before.
	c, err := client.Dial(ctx, srv, client.Handlers(agreeable{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	text, err := client.Call[string](ctx, c, "book", map[string]string{"city": "Oslo"})
	fmt.Println(text, err)
	// Output: room 12 in Oslo <nil>
}

// agreeable is a user who agrees to everything.
type agreeable struct{}

func (agreeable) Elicit(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	return &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: json.RawMessage(`{"confirm":true}`)}, nil
}
