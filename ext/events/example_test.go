package events_test

import (
	"context"
	"net/http"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/events"
)

func ExampleReceiver() {
	_ = func(ctx context.Context, c *client.Client, deliver events.Deliver) error {
		// docs:begin receive
		receiver := events.NewReceiver("https://agent.example.com/hook")
		http.Handle("/hook", receiver)                                                         // served already
		err := receiver.Subscribe(ctx, c, "message_received", nil, events.Position{}, deliver) // until ctx ends
		// docs:end receive
		return err
	}
}
