package natsfleet

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/mcpkit/mcpkit-go/fleet"
)

func init() { fleet.Register("nats", open) }

// open returns an engine with a connection of its own, which Close closes. Whether a server is there,
// only the methods tell.
func open(_ context.Context, u *url.URL) (*Engine, error) {
	query := u.Query()
	opts := Options{Prefix: query.Get("prefix"), Domain: query.Get("domain")}
	for name := range query {
		text := query.Get(name)
		var err error
		switch name {
		case "prefix", "domain":
		case "replicas":
			opts.Replicas, err = strconv.Atoi(text)
		case "memory":
			opts.Memory, err = strconv.ParseBool(text)
		case "maxbytes":
			opts.MaxBytes, err = strconv.ParseInt(text, 10, 64)
		default:
			return nil, fmt.Errorf("natsfleet: the URL: the parameter %q is unknown", name)
		}
		if err != nil {
			return nil, fmt.Errorf("natsfleet: the URL: %s is %q", name, text)
		}
	}
	u.RawQuery = ""
	nc, err := nats.Connect(u.String(), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true))
	if err != nil {
		return nil, fmt.Errorf("natsfleet: %w", err)
	}
	e := New(nc, &opts)
	e.close = nc.Close
	return e, nil
}
