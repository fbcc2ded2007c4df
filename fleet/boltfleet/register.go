package boltfleet

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/mcpkit/mcpkit-go/fleet"
)

func init() {
	// The URL names a file by its absolute path: bolt:///var/lib/shop/fleet.db.
	fleet.Register("bolt", func(_ context.Context, address string) (*Engine, error) {
		u, err := url.Parse(address)
		if err != nil {
			return nil, fmt.Errorf("boltfleet: the URL: %w", err)
		}
		if u.Host != "" || u.Path == "" || u.RawQuery != "" {
			return nil, errors.New("boltfleet: the URL: write bolt:///path/of/the/file")
		}
		return Open(u.Path, nil)
	})
}
