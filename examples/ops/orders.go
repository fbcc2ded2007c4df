package main

import (
	"context"
	"sync"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Orders keeps the orders of a shop.
type Orders struct {
	_ mcpkit.Info `name:"orders" version:"1.0.0"`
	_ struct {
		Find   mcpkit.Tool `hints:"readonly"`
		Refund mcpkit.Tool `hints:"destructive" scopes:"orders:refund" tags:"money"`
		Ping   mcpkit.Skip
	}

	mu   sync.Mutex
	open map[string]int // guarded by mu: cents by order
}

// NewOrders returns a shop with two orders.
func NewOrders() *Orders {
	return &Orders{open: map[string]int{"A1": 1999, "A2": 500}}
}

// Ping reports whether orders can be reached. With a database, it would ask the database.
func (o *Orders) Ping(ctx context.Context) error { return ctx.Err() }

// Order names an order.
type Order struct {
	// The order's number.
	ID string `json:"id"`
}

// Find returns the open amount of an order, in cents.
func (o *Orders) Find(in Order) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	cents, ok := o.open[in.ID]
	if !ok {
		return 0, mcpkit.Errorf("there is no order %q", in.ID)
	}
	return cents, nil
}

// Refund names the order to refund and the card.
type Refund struct {
	// The order's number.
	ID string `json:"id"`
	// The number of the card.
	Card string `json:"card" secret:"true"`
}

// Refund refunds an order.
func (o *Orders) Refund(in Refund) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.open[in.ID]; !ok {
		return "", mcpkit.Errorf("there is no order %q", in.ID)
	}
	delete(o.open, in.ID)
	return "refunded " + in.ID, nil
}
