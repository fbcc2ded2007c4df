package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/oauth2"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
)

const (
	loginLifetime  = 10 * time.Minute // from the authorization request to the consent
	codeLifetime   = time.Minute
	accessLifetime = 10 * time.Minute
	idleLifetime   = 30 * 24 * time.Hour // of a grant that is not used
	grantLifetime  = 90 * 24 * time.Hour // of a grant, however often it is used
	consentTime    = 365 * 24 * time.Hour

	askTimeout   = 15 * time.Second
	lockLifetime = 20 * time.Second // longer than askTimeout
	lockRetry    = 50 * time.Millisecond
	maxGrants    = 100 // of a user
)

// A grant is what one login allows a client: the record behind a code, its refresh tokens and its
// access tokens. All of them end with it. Refresh tokens are numbered: only the last one is valid.
type grant struct {
	Client   string       `json:"client"` // digest of the ID
	User     User         `json:"user"`
	Scopes   []string     `json:"scopes,omitempty"`
	Refresh  bool         `json:"refresh,omitempty"` // the client uses refresh tokens
	Begun    time.Time    `json:"begun"`
	Upstream oauth2.Token `json:"upstream"` // of the provider; only Broker.Upstream gives it away

	// Until the code is redeemed.
	Redirect  string    `json:"redirect"`
	Challenge string    `json:"challenge"`
	Approved  time.Time `json:"approved,omitzero"`

	// Afterwards.
	Redeemed   bool   `json:"redeemed,omitempty"`
	Number     int    `json:"number,omitempty"`     // of the valid refresh token
	Thumbprint string `json:"thumbprint,omitempty"` // of the key that the client's tokens are bound to
}

// ttl is how long the grant is kept from now on.
func (g *grant) ttl(now time.Time) time.Duration {
	ttl := loginLifetime
	if g.Redeemed && g.Refresh {
		ttl = min(idleLifetime, g.Begun.Add(grantLifetime).Sub(now))
	} else if g.Redeemed {
		ttl += accessLifetime
	}
	return max(ttl, fleet.MinTTL)
}

// create keeps a new grant and returns its key.
func (b *Broker) create(ctx context.Context, key string, g *grant) error {
	data, err := jsonx.Marshal(g)
	if err != nil {
		return err
	}
	group := fleet.Digest(g.User.Subject)
	if err := b.makeRoom(ctx, group); err != nil {
		return err
	}
	_, err = b.grants.Create(ctx, fleet.Record{Key: key, Group: group, Data: data, TTL: g.ttl(time.Now())})
	return err
}

// makeRoom deletes the grant of a user that would end first, if the user has too many.
func (b *Broker) makeRoom(ctx context.Context, group string) error {
	if n, err := b.grants.Count(ctx, group); err != nil || n < maxGrants {
		return err
	}
	all, err := b.grants.List(ctx, group, "", maxGrants)
	if err != nil || len(all) < maxGrants {
		return err
	}
	first := slices.MinFunc(all, func(x, y fleet.Record) int { return int((x.TTL - y.TTL) / time.Millisecond) })
	return b.grants.Delete(ctx, first.Key, 0)
}

// read returns a grant, or ErrEnded.
func (b *Broker) read(ctx context.Context, key string) (*grant, error) {
	r, err := b.grants.Get(ctx, key)
	if err != nil && !errors.Is(err, fleet.ErrNotFound) {
		return nil, err
	}
	return decodeGrant(r)
}

// decodeGrant returns the grant in a record, or ErrEnded if there is none.
func decodeGrant(r fleet.Record) (*grant, error) {
	if r.Revision == 0 {
		return nil, ErrEnded
	}
	g := new(grant)
	return g, jsonx.Unmarshal(r.Data, g)
}

// change changes a grant atomically: apply sees each version that it may replace. If apply returns an
// error, the grant stays as it is.
func (b *Broker) change(ctx context.Context, key string, apply func(g *grant) error) (g *grant, err error) {
	_, err = b.grants.Change(ctx, key, func(r *fleet.Record) (err error) {
		if g, err = decodeGrant(*r); err != nil {
			return err
		}
		if err = apply(g); err != nil {
			return err
		}
		r.TTL = g.ttl(time.Now())
		r.Data, err = jsonx.Marshal(g)
		return err
	})
	return g, err
}

// end deletes a grant, with all of its tokens except access tokens that have been issued.
func (b *Broker) end(ctx context.Context, key, reason string) error {
	b.opts.Logger.Info("broker: a login has ended", "reason", reason)
	return b.grants.Delete(ctx, key, 0)
}

// locked runs do while no other replica runs it for the same grant: the provider may issue a new
// refresh token with each use of the old one, and take a second use for a theft.
func (b *Broker) locked(ctx context.Context, key string, do func() error) error {
	for {
		_, err := b.locks.Create(ctx, fleet.Record{Key: key, TTL: lockLifetime})
		if err == nil {
			break
		}
		if !errors.Is(err, fleet.ErrExists) {
			return err
		}
		select {
		case <-time.After(lockRetry):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer func() { _ = b.locks.Delete(context.WithoutCancel(ctx), key, 0) }() // otherwise it expires
	return do()
}

// renew asks the provider whether the login of a grant still exists, with a new upstream token if the
// provider issues refresh tokens, and decides anew what the user may do. It ends the grant if the
// provider or the options do not admit the user any more. wanted skips that for grants that another
// call has just renewed; nil skips it for none.
func (b *Broker) renew(ctx context.Context, key string, wanted func(g *grant) bool) (g *grant, err error) {
	err = b.locked(ctx, key, func() error {
		// It goes on if the caller leaves: a refresh token that the provider has replaced must not be lost.
		ask, cancel := context.WithTimeout(b.outgoing(context.WithoutCancel(ctx)), askTimeout)
		defer cancel()
		if g, err = b.read(ask, key); err != nil || wanted != nil && !wanted(g) {
			return err
		}
		t, err := b.refreshUpstream(ask, &g.Upstream)
		if err != nil {
			return err
		}
		// Kept before anything else can fail.
		if g, err = b.change(ask, key, func(g *grant) error { g.Upstream = *t; return nil }); err != nil {
			return err
		}
		user, err := b.upstream.user(ask, t, "", &g.User)
		if err != nil {
			return err
		}
		if user.Subject != g.User.Subject {
			return ErrEnded
		}
		scopes, err := b.admit(ask, user, g.Scopes)
		if err != nil {
			return err
		}
		g, err = b.change(ask, key, func(g *grant) error { g.User, g.Scopes = *user, scopes; return nil })
		return err
	})
	if errors.Is(err, ErrEnded) || errors.Is(err, ErrRefused) {
		return nil, cmp.Or(b.end(context.WithoutCancel(ctx), key, err.Error()), ErrEnded)
	}
	return g, err
}

// refreshUpstream returns a new token of the provider, or the old one if it is valid and there is no
// refresh token. The error is ErrEnded if there is no valid token any more.
func (b *Broker) refreshUpstream(ctx context.Context, t *oauth2.Token) (*oauth2.Token, error) {
	config, err := b.upstream.config(ctx)
	switch {
	case err != nil:
		return nil, err
	case t.RefreshToken == "" && !t.Valid():
		return nil, ErrEnded
	case t.RefreshToken == "":
		return t, nil
	}
	// A token without an access token is always refreshed.
	t, err = config.TokenSource(ctx, &oauth2.Token{RefreshToken: t.RefreshToken}).Token()
	return t, noToken(err)
}

// noToken returns an error of the provider's token endpoint without the response, which may repeat a
// secret. The error is ErrEnded if the code or refresh token is not valid any more.
func noToken(err error) error {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case !ok:
		return err
	case refused.ErrorCode == codeInvalidGrant:
		return ErrEnded
	}
	return fmt.Errorf("the provider issued no token: %s %q", refused.Response.Status, refused.ErrorCode)
}

// consented reports whether the user has allowed the client these scopes before. A redirect URI on the
// user's machine proves nothing about who listens there, so consent is asked for each time (RFC 8252,
// section 8.6).
func (b *Broker) consented(ctx context.Context, g *grant) bool {
	r, err := b.consents.Get(ctx, consentKey(g))
	var scopes []string
	if err != nil || jsonx.Unmarshal(r.Data, &scopes) != nil {
		return false
	}
	return !slices.ContainsFunc(g.Scopes, func(s string) bool { return !slices.Contains(scopes, s) })
}

// remember remembers the consent of a user.
func (b *Broker) remember(ctx context.Context, g *grant) {
	data, err := jsonx.Marshal(g.Scopes)
	if err == nil {
		key := consentKey(g)
		_ = b.consents.Delete(ctx, key, 0)
		_, err = b.consents.Create(ctx, fleet.Record{Key: key, Data: data, TTL: consentTime})
	}
	if err != nil {
		b.opts.Logger.Warn("broker: a consent is not remembered", "error", err)
	}
}

func consentKey(g *grant) string {
	return fleet.Digest(g.Client + "\x00" + g.Redirect + "\x00" + g.User.Subject)
}

// session returns the grant behind the access token of a request.
func (b *Broker) session(ctx context.Context) (key string, g *grant, err error) {
	p := oauth.FromContext(ctx)
	if p == nil || p.Issuer != b.opts.Issuer {
		return "", nil, errors.New("broker: the request has no access token of this broker")
	}
	key, _ = p.Claims["sid"].(string)
	if g, err = b.read(ctx, key); err != nil {
		return "", nil, err
	}
	if g.User.Subject != p.Subject || g.Client != fleet.Digest(p.ClientID) {
		return "", nil, ErrEnded
	}
	return key, g, nil
}

// User returns the user of a request, as the provider described the user at the login or the last
// refresh. ctx is the context of a method, or of an HTTP handler behind [Broker.Protect].
func (b *Broker) User(ctx context.Context) (*User, error) {
	_, g, err := b.session(ctx)
	if err != nil {
		return nil, err
	}
	return &g.User, nil
}

// Upstream returns the source of the provider's access tokens for the user of a request, for calls of
// the provider's API. It refreshes a token that has expired. ctx is the context of a method, or of an
// HTTP handler behind [Broker.Protect].
//
// The tokens act as the user at the provider. Send them nowhere else, and not to the caller.
func (b *Broker) Upstream(ctx context.Context) oauth2.TokenSource { return &source{b, ctx} }

type source struct {
	b   *Broker
	ctx context.Context
}

// Token implements [oauth2.TokenSource].
func (s *source) Token() (*oauth2.Token, error) {
	key, g, err := s.b.session(s.ctx)
	if err != nil {
		return nil, err
	}
	if !g.Upstream.Valid() {
		if g, err = s.b.renew(s.ctx, key, func(g *grant) bool { return !g.Upstream.Valid() }); err != nil {
			return nil, err
		}
	}
	g.Upstream.RefreshToken = "" // stays in the broker
	return &g.Upstream, nil
}
