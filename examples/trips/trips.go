package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Trips plans and books trips.
type Trips struct {
	_ mcpkit.Info `name:"trips" version:"1.0.0"`
	_ struct {
		Book     mcpkit.Tool `hints:"additive" params:"city" task:"optional"`
		Plan     mcpkit.Tool `hints:"readonly"`
		Describe mcpkit.Tool `hints:"readonly" params:"city"`
		Ticket   mcpkit.Tool `hints:"additive" params:"city"`
	}

	mu      sync.Mutex
	holds   int               // the number of rooms held so far
	paid    []string          // the paid bookings
	tickets map[string]string // city by order
}

// docs:begin book

// Dates are the dates of a trip.
type Dates struct {
	// The first day, as 2026-12-31.
	From string `json:"from" validate:"datetime=2006-01-02"`
	// How many nights to stay.
	Nights int `json:"nights" default:"3" validate:"min=1,max=30"`
}

// Book books a room, after the user has said when and has agreed to the price.
func (t *Trips) Book(ctx context.Context, city string) (string, error) {
	when, err := mcpkit.Elicit[Dates](ctx, "When do you want to go to "+city+"?")
	if err != nil {
		return "", err
	}
	hold, err := mcpkit.Once(ctx, "hold", func() (Hold, error) { return t.hold(city, when) })
	if err != nil {
		return "", err
	}
	ok, err := mcpkit.Confirm(ctx, fmt.Sprintf("Pay %d euros for %s?", hold.Price, hold.Room))
	if err != nil {
		return "", err
	}
	if !ok {
		return "nothing was booked", nil
	}
	return t.pay(hold), nil
}

// docs:end book

// A Hold is a reserved room.
type Hold struct {
	Room  string
	Price int
}

func (t *Trips) hold(city string, when Dates) (Hold, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holds++
	return Hold{Room: fmt.Sprintf("room %d in %s from %s", t.holds, city, when.From), Price: 80 * when.Nights}, nil
}

func (t *Trips) pay(h Hold) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paid = append(t.paid, h.Room)
	return "booked " + h.Room
}

// docs:begin plan

// Plan asks for the city and the dates in one round.
func (t *Trips) Plan(ctx context.Context) (string, error) {
	var city string
	var when Dates
	err := mcpkit.Ask(ctx,
		func(ctx context.Context) (err error) {
			city, err = mcpkit.Choose(ctx, "Where to?", []string{"Lisbon", "Oslo"})
			return err
		},
		func(ctx context.Context) (err error) {
			when, err = mcpkit.Elicit[Dates](ctx, "When?")
			return err
		},
	)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s from %s, %d nights", city, when.From, when.Nights), nil
}

// docs:end plan

// Describe asks the client's model to describe a city. Without a model it returns the name.
func (t *Trips) Describe(ctx context.Context, city string) (string, error) {
	question := protocol.SamplingContents{mcpkit.Text("Describe " + city + " in one sentence.")}
	answer, err := mcpkit.Sample(ctx, &protocol.CreateMessageParams{
		Messages:  []protocol.SamplingMessage{{Role: protocol.RoleUser, Content: question}},
		MaxTokens: 200,
	})
	if errors.Is(err, mcpkit.ErrUnsupported) {
		return city, nil
	}
	if err != nil {
		return "", err
	}
	if text, ok := answer.Content[0].(*protocol.TextContent); ok {
		return text.Text, nil
	}
	return city, nil
}

// docs:begin ticket

// Ticket orders one ticket to a city, even if the client repeats the last round.
func (t *Trips) Ticket(ctx context.Context, city string) (string, error) {
	id, err := mcpkit.Once(ctx, "order", func() (string, error) { return rand.Text(), nil })
	if err != nil {
		return "", err
	}
	ok, err := mcpkit.Confirm(ctx, "Buy a ticket to "+city+"?")
	if err != nil {
		return "", err
	}
	if !ok {
		return "nothing was ordered", nil
	}
	return t.order(id, city), nil
}

// docs:end ticket

// order writes an order under its unique ID. It returns the same result if that ID exists already.
func (t *Trips) order(id, city string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tickets == nil {
		t.tickets = map[string]string{}
	}
	t.tickets[id] = city
	return "ordered a ticket to " + city + ", order " + id
}
