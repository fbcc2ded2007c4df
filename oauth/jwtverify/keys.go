package jwtverify

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth/internal/fetch"
	"github.com/mcpkit/mcpkit-go/oauth/internal/keys"
)

const (
	fetchTimeout = 15 * time.Second // time for fetching keys or introspecting a token
	maxStale     = 24 * time.Hour   // how long old keys are used if fetches fail
	maxKeys      = 100              // keys of an issuer
	maxTried     = 8                // keys to try for a token without a kid
	noKey        = "\x00"           // a kid that no key has
	recheckTime  = time.Minute      // after which keys are fetched again for a token whose key they should contain
)

func issuerOf(payload string) string {
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return ""
	}
	var c struct {
		Issuer string `json:"iss"`
	}
	if jsonx.Unmarshal(raw, &c) != nil {
		return ""
	}
	return c.Issuer
}

// A keySet holds the keys of one issuer. It fetches them when they are first needed, when they are
// old, and when a token names an unknown key. At most one fetch runs at a time, and no more often
// than minRefresh allows.
type keySet struct {
	issuer     string
	uri        string // "" means that the metadata names it
	policy     fetch.Policy
	client     *http.Client
	minRefresh time.Duration
	maxAge     time.Duration
	leeway     time.Duration // how much the issuer's clock may be ahead
	fixed      bool
	logger     *slog.Logger
	now        func() time.Time

	mu      sync.Mutex
	keys    []jose.JSONWebKey // guarded by mu
	fetched time.Time         // when the fetch of keys started; guarded by mu
	tried   time.Time         // when the last fetch started; guarded by mu
	last    error             // error of the last fetch; guarded by mu
	flight  chan struct{}     // closed when the current fetch ends; nil without one; guarded by mu
}

func newKeySet(opts *Options) (*keySet, error) {
	s := &keySet{
		issuer: opts.Issuer, uri: opts.JWKSURI, policy: opts.Fetch.policy(), client: opts.Fetch.client(),
		minRefresh: cmp.Or(max(opts.MinRefresh, 0), DefaultMinRefresh), maxAge: cmp.Or(max(opts.MaxKeyAge, 0), DefaultMaxKeyAge),
		leeway: leeway(opts.Leeway), logger: opts.Logger, now: time.Now,
	}
	s.minRefresh = min(s.minRefresh, maxStale) // so that keys are always fetched again
	if opts.JWKS != nil {
		var doc document
		if err := jsonx.Unmarshal(opts.JWKS, &doc); err != nil {
			return nil, errors.New("JWKS is not a JSON Web Key Set")
		}
		if s.keys = doc.keys(); len(s.keys) == 0 {
			return nil, errors.New("JWKS has no public key to check signatures with")
		}
		s.fixed = true
		return s, nil
	}
	if s.uri != "" {
		if _, err := s.policy.CheckURL(s.uri); err != nil {
			return nil, fmt.Errorf("JWKSURI: %w", err)
		}
		return s, nil
	}
	if opts.Issuer == "" {
		return s, nil // reported already
	}
	if _, err := s.policy.CheckURL(opts.Issuer); err != nil {
		return nil, fmt.Errorf("the metadata of Issuer cannot be looked up; give JWKSURI: %w", err)
	}
	return s, nil
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
// issued is the iat of the token, or zero.
//
// A token with an unknown key is rejected only if the keys are newer than the token. Anyone can
// send tokens with a made-up kid and use up the fetches that minRefresh allows. A valid token with
// a new key then gets an error that is not an [oauth.TokenError], so that the client retries.
func (s *keySet) find(ctx context.Context, kid, alg string, issued time.Time) ([]jose.JSONWebKey, error) {
	if len(kid) > 512 {
		return nil, refuse("its kid is too long")
	}
	s.mu.Lock()
	newer := s.now() // keys from then on are newer than the token
	s.mu.Unlock()
	if settled := issued.Add(s.leeway); !issued.IsZero() && settled.Before(newer) {
		newer = settled
	}
	asked := false // the issuer, for this token
	for {
		s.mu.Lock()
		now := s.now()
		keys := match(s.keys, kid, alg)
		age := now.Sub(s.fetched)
		have := s.fixed || !s.fetched.IsZero() && age < maxStale
		decided := s.fixed || have && (s.fetched.After(newer) || asked && s.last == nil)
		// The issuer may publish a key late, hence recheckTime.
		wanted := !s.fixed && (!have || age >= s.maxAge || len(keys) == 0 && (!decided || age >= recheckTime))
		mayAsk := s.tried.IsZero() || now.Sub(s.tried) >= s.minRefresh
		flight := s.flight
		switch {
		case asked:
			flight = nil // wait only once
		case flight == nil && wanted && mayAsk:
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
				return nil, fmt.Errorf("jwtverify: the keys of %s: %w", s.issuer, context.Cause(ctx))
			}
		case err != nil && wanted:
			return nil, fmt.Errorf("jwtverify: the keys of %s: %w", s.issuer, err)
		case decided:
			return nil, refuse("its key is not known")
		}
		return nil, fmt.Errorf("jwtverify: the keys of %s: the key of the token is not among them, and they are not fetched again within %v", s.issuer, s.minRefresh)
	}
}

// match returns the keys that fit kid and alg.
func match(set []jose.JSONWebKey, kid, alg string) []jose.JSONWebKey {
	var found []jose.JSONWebKey
	for _, key := range set {
		if kid != "" && key.KeyID != kid || key.Algorithm != "" && key.Algorithm != alg || !slices.Contains(keys.Algorithms(key.Key), jose.SignatureAlgorithm(alg)) {
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
	began := s.now()
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
			s.logger.Warn("jwtverify: keys could not be fetched", "issuer", s.issuer, "error", err.Error())
		}
		s.flight = nil
		close(flight)
	}()
	return flight
}

func (s *keySet) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	uri := s.uri
	if uri == "" {
		as, err := s.policy.AuthorizationServer(ctx, s.client, s.issuer)
		if err != nil {
			return nil, err
		}
		if uri = as.JWKSURI; uri == "" {
			return nil, fmt.Errorf("the metadata of the authorization server %q has no jwks_uri", s.issuer)
		}
	}
	var doc document
	if err := s.policy.Get(ctx, s.client, uri, &doc); err != nil {
		return nil, err
	}
	keys := doc.keys()
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s has no public key to check signatures with", fetch.Shown(uri))
	}
	return keys, nil
}
