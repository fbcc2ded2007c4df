// Command gateway combines three servers into one: its own service, a mounted server of the same
// program, and a remote server. The file gateway.yaml configures its address and middleware.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/config"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/proxy"
)

func main() {
	if err := run(context.Background(), "gateway.yaml", os.Getenv("WEATHER_URL"), os.Getenv("WEATHER_TOKEN")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves the gateway as the file configures it.
func run(ctx context.Context, file, weather, token string) error {
	c, err := config.Load(file)
	if err != nil {
		return err
	}
	srv, err := newGateway(c, weather, token)
	if err != nil {
		return err
	}
	transports, err := c.Transports()
	if err != nil {
		return err
	}
	return srv.Serve(ctx, transports...)
}

// docs:begin gateway

// newGateway combines the servers.
func newGateway(c *config.Config, weather, token string) (*mcpkit.Server, error) {
	srv, err := c.New(&Desk{}, mcpkit.Name("gateway", "1.0.0"))
	if err != nil {
		return nil, err
	}
	billing, err := mcpkit.New(&Billing{})
	if err != nil {
		return nil, err
	}
	if err := srv.Mount("billing", billing); err != nil { // the tool charge becomes billing_charge
		return nil, err
	}
	remote, err := proxy.New(weather,
		proxy.Name("weather"),
		proxy.Optional(), // the gateway works without it
		proxy.Dial(client.Header("Authorization", "Bearer "+token)))
	if err != nil {
		return nil, err
	}
	return srv, srv.Mount("weather", remote)
}

// docs:end gateway

// Desk is the service of the gateway itself.
type Desk struct {
	_ struct {
		Hours mcpkit.Tool `desc:"Returns the opening hours." hints:"readonly"`
	}
}

// Hours returns the opening hours.
func (*Desk) Hours() string { return "Monday to Friday, 9 to 17" }

// Billing is the service of the mounted server.
type Billing struct {
	_ struct {
		Charge mcpkit.Tool `desc:"Charges an account, after the user has agreed." hints:"destructive"`
	}
}

// ChargeInput is the input of Charge.
type ChargeInput struct {
	Account string `json:"account" desc:"Who pays."`
	Cents   int    `json:"cents" validate:"min=1" desc:"How much."`
}

// Charge charges an account, after the user has agreed.
func (*Billing) Charge(ctx context.Context, in ChargeInput) (string, error) {
	ok, err := mcpkit.Confirm(ctx, fmt.Sprintf("Pay %d cents from %s?", in.Cents, in.Account))
	if err != nil || !ok {
		return "nothing was charged", err
	}
	return fmt.Sprintf("%s paid %d cents", in.Account, in.Cents), nil
}
