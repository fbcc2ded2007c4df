package redisfleet

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/redis/go-redis/v9"

	"github.com/mcpkit/mcpkit-go/fleet"
)

func init() {
	fleet.Register("redis", open)
	fleet.Register("rediss", open)
}

// open returns an engine with a client of its own, which Close closes. It does not connect yet.
func open(_ context.Context, u *url.URL) (*Engine, error) {
	query := u.Query()
	opts := Options{Prefix: query.Get("prefix")}
	query.Del("prefix")
	u.RawQuery = query.Encode()

	var client redis.UniversalClient
	if query.Has("addr") {
		cluster, err := redis.ParseClusterURL(u.String())
		if err != nil {
			return nil, fmt.Errorf("redisfleet: the URL: %w", err)
		}
		cluster.ContextTimeoutEnabled = true
		client = redis.NewClusterClient(cluster)
	} else {
		single, err := redis.ParseURL(u.String())
		if err != nil {
			return nil, fmt.Errorf("redisfleet: the URL: %w", err)
		}
		single.ContextTimeoutEnabled = true
		client = redis.NewClient(single)
	}
	e := New(client, &opts)
	e.close = client.Close
	if e.fault != nil {
		return nil, errors.Join(e.fault, e.Close())
	}
	return e, nil
}
