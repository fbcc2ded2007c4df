package natsfleet

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/mcpkit/mcpkit-go/fleet"
)

func init() {
	fleet.Register("nats", func(_ context.Context, address string) (*Engine, error) { return Open(address) })
}

// Open returns an engine with a connection of its own, which Close closes. The connection is made
// in the background, and again whenever it breaks. The URL is that of a server, such as
// nats://user:password@host:4222. The parameters prefix, replicas, memory (true or false), maxbytes
// and domain are those of [Options]. The error says which part of the URL is wrong, without the
// password; whether a server is there, only the methods tell.
func Open(address string) (*Engine, error) {
	u, err := url.Parse(address)
	if err != nil {
		if bad, ok := errors.AsType[*url.Error](err); ok {
			err = bad.Err // without the URL, which may have a password
		}
		return nil, fmt.Errorf("natsfleet: the URL: %w", err)
	}
	query := u.Query()
	opts := Options{Prefix: query.Get("prefix"), Domain: query.Get("domain")}
	for name := range query {
		text := query.Get(name)
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
