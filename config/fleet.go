package config

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/middleware/healthz"
	"github.com/mcpkit/mcpkit-go/transport"
)

// An EngineURL says where the engine of a fleet is. It is a URL without a user and a password, or
// refers to one as a [Secret] does. It prints as the reference, or without what may be secret.
type EngineURL struct {
	source
	url string
}

// URL returns the URL, which may have a password. It is "" if it is not set.
func (e EngineURL) URL() string { return e.url }

// engineURL reads a URL or a reference to one. Its errors do not contain the URL.
func (l *loader) engineURL(text string) (EngineURL, error) {
	scheme, _, _ := strings.Cut(text, ":")
	reference := scheme == "env" || scheme == "file" || scheme == "base64"
	e := EngineURL{url: text}
	if reference {
		s, err := l.secret(text)
		if err != nil {
			return EngineURL{}, err
		}
		e = EngineURL{s.source, string(s.value)}
	}
	u, err := url.Parse(e.url)
	switch {
	case err != nil || u.Scheme == "":
		return EngineURL{}, errors.New("this is not a URL; write for example redis://localhost:6379")
	case !reference && u.User != nil:
		return EngineURL{}, errors.New("this URL has a user or password; put it into a variable or a file, and write env:NAME or file:PATH here")
	case !reference:
		u.RawQuery, u.Fragment = "", ""
		e.from = u.String()
	}
	return e, nil
}

// openTime is how long opening the engine may take.
const openTime = 10 * time.Second

// openFleet opens the engine.
func (c *Config) openFleet() (fleet.Engine, error) {
	ctx, cancel := context.WithTimeout(context.Background(), openTime)
	defer cancel()
	engine, err := fleet.Open(ctx, c.Fleet.url)
	if err != nil {
		return nil, fmt.Errorf("config: fleet: %w", err)
	}
	return engine, nil
}

// fleetOf returns the fleet of the server that is served, or nil.
func fleetOf(h transport.Handler) *fleet.Fleet {
	if member, ok := h.(interface{ Fleet() *fleet.Fleet }); ok {
		return member.Fleet()
	}
	return nil
}

// checks returns what readiness depends on.
func checks(f *fleet.Fleet) []healthz.Check {
	if f == nil {
		return nil
	}
	return []healthz.Check{healthz.Fleet(f.Health)}
}
