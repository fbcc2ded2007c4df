package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

const boardURI = "board://today"

// Desk takes orders. It keeps nothing in memory, since each call may reach another replica.
type Desk struct {
	_ mcpkit.Info `name:"desk" version:"1.0.0"`
	_ struct {
		Where    mcpkit.Tool     `hints:"readonly"`
		Colour   mcpkit.Tool     `hints:"readonly"`
		Describe mcpkit.Tool     `hints:"readonly" params:"city"`
		Count    mcpkit.Tool     `hints:"readonly"`
		Order    mcpkit.Tool     `hints:"additive" params:"id"`
		Deliver  mcpkit.Tool     `hints:"additive" params:"id" task:"optional,durable"`
		Pin      mcpkit.Tool     `hints:"idempotent" params:"note"`
		Board    mcpkit.Resource `uri:"board://today"`
	}

	replica string
	books   string                // URL of the books of the shop, which are not a part of the fleet
	changed func(uri string) bool // notifies clients of all replicas
}

// Where returns the name of the replica that answers.
func (d *Desk) Where() string { return d.replica }

// A Choice is the answer to the question for a colour.
type Choice struct {
	Name string `json:"name"`
}

// Colour asks the user for a colour.
func (d *Desk) Colour(ctx context.Context) (string, error) {
	c, err := mcpkit.Elicit[Choice](ctx, "Which colour?")
	return c.Name, err
}

// Describe lets the model of the client describe a city.
func (d *Desk) Describe(ctx context.Context, city string) (string, error) {
	answer, err := mcpkit.Sample(ctx, &protocol.CreateMessageParams{
		Messages:  []protocol.SamplingMessage{{Role: protocol.RoleUser, Content: protocol.SamplingContents{mcpkit.Text("Describe " + city)}}},
		MaxTokens: 100,
	})
	if err != nil {
		return "", err
	}
	text, ok := answer.Content[0].(*protocol.TextContent)
	if !ok {
		return "", errors.New("the model did not answer with a text")
	}
	return text.Text, nil
}

// Count counts to five and reports its progress.
func (d *Desk) Count(ctx context.Context, call *mcpkit.Call) (int, error) {
	for i := range 5 {
		call.Progress(float64(i+1), 5, "counting")
		select {
		case <-time.After(40 * time.Millisecond):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	return 5, nil
}

// Order writes an order into the books after the user has agreed. Clients that cannot ask agree by
// calling.
func (d *Desk) Order(ctx context.Context, id string) (string, error) {
	ok, err := mcpkit.Confirm(ctx, "Order "+id+"?")
	if errors.Is(err, mcpkit.ErrUnsupported) || errors.Is(err, mcpkit.ErrCannotAsk) {
		ok, err = true, nil
	}
	if err != nil || !ok {
		return "nothing was ordered", err
	}
	return "ordered " + id, d.write(ctx, "order", id, "")
}

// Deliver packs a parcel, and sends it when the user agrees. As a task it outlives the replica that
// runs it: another one runs it again from its beginning.
func (d *Desk) Deliver(ctx context.Context, id string) (string, error) {
	if err := d.write(ctx, "run", id, ""); err != nil {
		return "", err
	}
	if err := d.once(ctx, "packed", id); err != nil {
		return "", err
	}
	if ok, err := mcpkit.Confirm(ctx, "Deliver "+id+"?"); err != nil || !ok {
		return "nothing was delivered", err
	}
	return "delivered " + id, d.once(ctx, "sent", id)
}

// once writes a line in one run of a call. The replica may die when the line is written and before
// the task knows it, so the books get a key that is the same in the next run, and ignore the repeat.
func (d *Desk) once(ctx context.Context, kind, id string) error {
	_, err := mcpkit.Once(ctx, kind, func() (bool, error) {
		return true, d.write(ctx, kind, id, mcpkit.OnceKey(ctx, kind))
	})
	return err
}

// Pin pins a note to the board.
func (d *Desk) Pin(ctx context.Context, note string) (string, error) {
	if err := d.write(ctx, "note", note, ""); err != nil {
		return "", err
	}
	d.changed(boardURI)
	return "pinned " + note, nil
}

// Board returns the board.
func (d *Desk) Board() string { return "the board" }

// Hours is a tool of the next version of the program.
func Hours() string { return "nine to five" }

// write writes a line into the books. They ignore a line whose key they have seen.
func (d *Desk) write(ctx context.Context, kind, id, key string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.books+"?"+url.Values{"kind": {kind}, "id": {id}, "key": {key}, "by": {d.replica}}.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("the books are closed: %s", resp.Status)
	}
	return nil
}
