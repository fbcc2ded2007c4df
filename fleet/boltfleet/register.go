package boltfleet

import (
	"context"
	"errors"
	"net/url"

	"github.com/mcpkit/mcpkit-go/fleet"
)

func init() {
	// The URL names a file by its absolute path: bolt:///var/lib/shop/fleet.db.
	fleet.Register("bolt", func(_ context.Context, u *url.URL) (*Engine, error) {
		if u.Host != "" || u.Path == "" || u.RawQuery != "" {
			return nil, errors.New("boltfleet: the URL: write bolt:///path/of/the/file")
		}
		return Open(u.Path, nil)
	})
}
