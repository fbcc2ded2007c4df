package resource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/internal/keys"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

const (
	fetchTimeout = 15 * time.Second
	minRefresh   = 10 * time.Second
	maxKeyAge    = time.Hour
	maxStale     = 24 * time.Hour // how long old keys are used if fetches fail
	maxKeys      = 100
	maxTried     = 8      // keys to try for a token without a kid
	noKey        = "\x00" // a kid that no key has
)

// A keySet holds the keys of one issuer. It fetches them when they are first needed, when they are
// old, and when a token names an unknown key. At most one fetch runs at a time, and no more often
// than minRefresh allows.
type keySet struct {
	opts   *Options
	issuer string
	uri    string // "" means that the metadata names it
	client *http.Client
	fixed  bool

	mu      sync.Mutex
	keys    []jose.JSONWebKey // guarded by mu
	fetched time.Time         // when the fetch of keys started; guarded by mu
	tried   time.Time         // when the last fetch started; guarded by mu
	last    error             // error of the last fetch; guarded by mu
	flight  chan struct{}     // closed when the current fetch ends; nil without one; guarded by mu
}

func newKeySet(opts *Options, issuer string, fixed []byte, uri string) (*keySet, error) {
	s := &keySet{opts: opts, issuer: issuer, uri: uri, client: opts.client()}
	if fixed != nil {
		var doc document
		if err := jsonx.Unmarshal(fixed, &doc); err != nil {
			return nil, errors.New("JWKS is not a JSON Web Key Set")
		}
		if s.keys = doc.keys(); len(s.keys) == 0 {
			return nil, errors.New("JWKS has no public key to check signatures with")
		}
		s.fixed = true
		return s, nil
	}
	if s.uri != "" {
		if _, err := opts.policy().CheckURL(s.uri); err != nil {
			return nil, fmt.Errorf("JWKSURI: %w", err)
		}
		return s, nil
	}
	if _, err := opts.policy().CheckURL(issuer); err != nil {
		return nil, fmt.Errorf("the metadata of the issuer cannot be looked up; give JWKSURI: %w", err)
	}
	return s, nil
}

// verify returns nil if one of the keys has signed a token.
func (s *keySet) verify(ctx context.Context, jws *jose.JSONWebSignature) error {
	header := jws.Signatures[0].Protected
	for again := false; ; again = true {
		candidates, err := s.find(ctx, header.KeyID, header.Algorithm)
		if err != nil {
			return err
		}
		for _, key := range candidates {
			if _, err := jws.Verify(key); err == nil {
				return nil
			}
		}
		if header.KeyID != "" || again {
			return refuse("its signature is wrong")
		}
		// The key may be a new one, which no kid tells.
		_, err = s.find(ctx, noKey, header.Algorithm)
		if _, decided := errors.AsType[*oauth.TokenError](err); err != nil && !decided {
			return err
		}
	}
}

// document is a JSON Web Key Set with undecoded keys, so that an unknown kind of key does not
// invalidate the others.
type document struct {
	Keys []json.RawMessage `json:"keys"`
}

// keys returns the usable signature keys: public, and not for encryption. A published symmetric or
// private key is no longer secret, so it is ignored.
func (d *document) keys() []jose.JSONWebKey {
	var keys []jose.JSONWebKey
	for _, raw := range d.Keys {
		var key jose.JSONWebKey
		if len(keys) == maxKeys {
			break
		}
		if key.UnmarshalJSON(raw) != nil || !key.Valid() || !key.IsPublic() || key.Use != "" && key.Use != "sig" {
			continue
		}
		keys = append(keys, key)
	}
	return keys
}

// find returns the keys that may have signed a token: those that fit its kid and its algorithm.
//
// A token with an unknown key is rejected only if the keys were fetched for it. Anyone can send
// tokens with a made-up kid and use up the fetches that minRefresh allows. A valid token with a new
// key then gets an error that is not an [oauth.TokenError], so that the client retries.
func (s *keySet) find(ctx context.Context, kid, alg string) ([]jose.JSONWebKey, error) {
	if len(kid) > 512 {
		return nil, refuse("its kid is too long")
	}
	for asked := false; ; { // asked: the issuer, for this token
		s.mu.Lock()
		now := time.Now()
		keys := match(s.keys, kid, alg)
		age := now.Sub(s.fetched)
		have := s.fixed || !s.fetched.IsZero() && age < maxStale
		wanted := !s.fixed && !asked && (len(keys) == 0 || age >= maxKeyAge)
		flight := s.flight
		if wanted && flight == nil && now.Sub(s.tried) >= minRefresh {
			flight, asked = s.begin(ctx), true
		}
		err := s.last
		s.mu.Unlock()

		switch {
		case have && len(keys) > 0:
			return keys, nil // fresh enough; a running fetch is for later tokens
		case wanted && flight != nil:
			select {
			case <-flight:
				continue
			case <-ctx.Done():
				return nil, fmt.Errorf("the keys of %s: %w", s.issuer, context.Cause(ctx))
			}
		case err != nil:
			return nil, fmt.Errorf("the keys of %s: %w", s.issuer, err)
		case s.fixed || asked:
			return nil, refuse("its key is not known")
		}
		return nil, fmt.Errorf("the keys of %s: the key of the token is not among them, "+
			"and they are not fetched again within %v", s.issuer, minRefresh)
	}
}

// match returns the keys that fit kid and alg.
func match(set []jose.JSONWebKey, kid, alg string) []jose.JSONWebKey {
	var found []jose.JSONWebKey
	for _, key := range set {
		if kid != "" && key.KeyID != kid || key.Algorithm != "" && key.Algorithm != alg ||
			!slices.Contains(keys.Algorithms(key.Key), jose.SignatureAlgorithm(alg)) {
			continue
		}
		if found = append(found, key); len(found) == maxTried {
			break
		}
	}
	return found
}

// begin starts a fetch; mu is held. The fetch is shared, so it does not end when one caller gives
// up.
func (s *keySet) begin(ctx context.Context) chan struct{} {
	flight := make(chan struct{})
	s.flight = flight
	began := time.Now()
	s.tried = began
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	// Ends with the fetch, after fetchTimeout at the latest.
	go func() {
		defer cancel()
		keys, err := s.fetch(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.last = err; err == nil {
			s.keys, s.fetched = keys, began
		} else {
			s.opts.Logger.Warn("resource: keys could not be fetched", "issuer", s.issuer, "error", err.Error())
		}
		s.flight = nil
		close(flight)
	}()
	return flight
}

func (s *keySet) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	uri := s.uri
	if uri == "" {
		as, err := s.opts.policy().AuthorizationServer(ctx, s.client, s.issuer)
		if err != nil {
			return nil, err
		}
		if uri = as.JWKSURI; uri == "" {
			return nil, fmt.Errorf("the metadata of the authorization server %q has no jwks_uri", s.issuer)
		}
	}
	var doc document
	if err := s.opts.policy().Get(ctx, s.client, uri, &doc); err != nil {
		return nil, err
	}
	keys := doc.keys()
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s has no public key to check signatures with", metadata.Shown(uri))
	}
	return keys, nil
}
