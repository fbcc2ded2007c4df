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
	open map[string]int    // guarded by mu: cents by order
	wait chan struct{}     // where set, Refund waits for it
	down func() error      // where set, what Ping says
	seen func(what string) // called on each run if set
}

// NewOrders returns a shop with two orders.
func NewOrders() *Orders {
	return &Orders{open: map[string]int{"A1": 1999, "A2": 500}}
}

// Ping reports whether orders can be reached.
func (o *Orders) Ping(context.Context) error {
	if o.down != nil {
		return o.down()
	}
	return nil
}

// Order says which order is meant.
type Order struct {
	// The order's number.
	ID string `json:"id"`
}

// Find returns what is left to pay of an order, in cents.
func (o *Orders) Find(in Order) (int, error) {
	o.saw("find")
	o.mu.Lock()
	defer o.mu.Unlock()
	cents, ok := o.open[in.ID]
	if !ok {
		return 0, mcpkit.Errorf("there is no order %q", in.ID)
	}
	return cents, nil
}

// Refund says which order to pay back, and to which card.
type Refund struct {
	// The order's number.
	ID string `json:"id"`
	// The number of the card.
	Card string `json:"card" secret:"true"`
}

// Refund pays an order back.
func (o *Orders) Refund(ctx context.Context, in Refund) (string, error) {
	o.saw("refund")
	if o.wait != nil {
		select {
		case <-o.wait:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.open[in.ID]; !ok {
		return "", mcpkit.Errorf("there is no order %q", in.ID)
	}
	delete(o.open, in.ID)
	return "refunded " + in.ID, nil
}

func (o *Orders) saw(what string) {
	if o.seen != nil {
		o.seen(what)
	}
}
