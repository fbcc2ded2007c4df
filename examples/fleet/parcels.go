package main

import (
	"context"
	"log"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Parcels sends parcels. It keeps nothing in memory, since each request may reach another replica.
type Parcels struct {
	_ mcpkit.Info `name:"parcels" version:"1.0.0"`
	_ struct {
		Weigh   mcpkit.Tool     `hints:"readonly,closed-world" params:"id"`
		Deliver mcpkit.Tool     `hints:"additive" params:"id" task:"optional,durable"`
		Status  mcpkit.Resource `uri:"parcels://status"`
	}

	carrier Carrier
	changed func(uri string) bool // notifies the clients of all replicas
}

// A Carrier takes parcels: a service of somebody else. It ignores a request whose key it has seen.
type Carrier interface {
	Take(ctx context.Context, id, key string) error
}

// Weigh returns the weight of a parcel in grams.
func (p *Parcels) Weigh(id string) int { return 100 * len(id) }

// Deliver gives a parcel to the carrier when the user agrees. If this replica dies while it runs,
// another one runs the method of a task again, from its beginning. What Once has kept is not done
// again. The replica may die after the carrier has taken the parcel and before Once has kept it;
// then the next run gives the carrier the same key.
func (p *Parcels) Deliver(ctx context.Context, id string) (string, error) {
	if ok, err := mcpkit.Confirm(ctx, "Deliver "+id+"?"); err != nil || !ok {
		return "not delivered", err
	}
	_, err := mcpkit.Once(ctx, "take", func() (bool, error) {
		return true, p.carrier.Take(ctx, id, mcpkit.OnceKey(ctx, "take"))
	})
	if err != nil {
		return "", err
	}
	p.changed("parcels://status")
	return "delivered " + id, nil
}

// Status tells whether parcels are delivered today.
func (p *Parcels) Status() string { return "The carrier comes at five." }

// logCarrier takes parcels by logging them.
type logCarrier struct{}

func (logCarrier) Take(_ context.Context, id, key string) error {
	log.Printf("the carrier takes parcel %q with key %s", id, key)
	return nil
}
