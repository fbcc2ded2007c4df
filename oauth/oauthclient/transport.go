package oauthclient

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/oauth/internal/dpop"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

const (
	maxAuthorizations = 3               // for one request
	maxLogins         = 4               // in an hour, without an accepted request
	maxScopeBytes     = 4 << 10         // of a challenge
	loginTimeout      = 5 * time.Minute // with the time that the user takes
	probeTimeout      = 10 * time.Second
	saveTimeout       = 10 * time.Second
	maxDrained        = 64 << 10
)

// ErrClosed is returned after [Transport.Close].
var ErrClosed = errors.New("oauthclient: closed")

// Options configures a [Transport]. The zero value is ready to use.
type Options struct {
	// Base sends the requests to the MCP server. Nil means [http.DefaultTransport].
	Base http.RoundTripper
	// Store keeps registrations and tokens. Nil means one in memory.
	Store Store
	// DPoP binds tokens to its key, and rejects tokens that are not bound. Nil means bearer tokens.
	DPoP *Prover
	// InsecureLoopback allows the authorization server and the MCP server to use http on a loopback
	// address. For development and tests.
	InsecureLoopback bool
	// PrivateNetworks are non-public networks in which authorization servers are allowed.
	PrivateNetworks []netip.Prefix
	// TLS configures connections to authorization servers. Nil means the system's defaults.
	TLS *tls.Config
	// Fetch sends requests for documents and to authorization servers instead of the guarded
	// transport, for networks that need a proxy. Fetch must check the addresses that it connects to
	// and the certificates; URLs and redirects are still checked. Nil means the guarded transport,
	// which uses no proxy, because a proxy would choose the address.
	Fetch http.RoundTripper
	// Logger receives a warning when the store fails to save. Nil means slog.Default.
	Logger *slog.Logger
}

// A Transport is an [http.RoundTripper] that puts tokens on the requests to one MCP server. It
// forwards requests to other origins, and requests with an Authorization header, unchanged. Create
// one with [New].
//
// A Transport is safe for concurrent use. All challenged requests wait for the same login. A login
// continues after the request that started it is cancelled, so a request with a deadline may fail
// while a later one finds the token. [Transport.Login] has no such deadline. After a rejected
// login, requests fail with the same error until Login is called; after one for more scopes, only
// those that need more.
type Transport struct {
	opts   Options // with defaults
	server *url.URL
	grant  Grant
	policy metadata.Policy
	http   *http.Client // for documents and endpoints
	idle   func()       // closes idle connections of http

	ctx     context.Context // ends with Close
	cancel  context.CancelCauseFunc
	running sync.WaitGroup // logins

	mu       sync.Mutex
	issued   issuedToken       // the current token; guarded by mu
	changes  uint64            // of issued.token; guarded by mu
	accepted bool              // whether a request with the token succeeded; guarded by mu
	logins   []time.Time       // for requests, since the last accepted one; guarded by mu
	refused  error             // error of a rejected login; guarded by mu
	enough   error             // error of a rejected login for more scopes; guarded by mu
	login    *pendingLogin     // in progress; guarded by mu
	wanted   []string          // scopes of requests that wait for a login without them; guarded by mu
	nonces   map[string]string // by origin; guarded by mu
}

// An issuedToken is a token with the client that requested it and the discovery of its issuer.
// Token and client are nil without a token.
type issuedToken struct {
	token  *Token
	client *Credentials
	at     *discovery
	stored bool // an earlier run, or another program, has got it
}

// A pendingLogin is a login that requests wait for.
type pendingLogin struct {
	done   chan struct{}
	err    error // valid once done is closed
	stepUp bool  // for more scopes
	cancel context.CancelCauseFunc
}

var (
	errLoggedOut = errors.New("logged out during the login")
	errTooLate   = fmt.Errorf("no login within %v", loginTimeout)
)

// New returns a transport for the MCP server at a URL. Nil options are the zero value. It returns
// an error if the URL is not https (or an allowed loopback address) or the grant is incomplete.
func New(server string, grant Grant, opts *Options) (*Transport, error) {
	opts = cmp.Or(opts, &Options{})
	u, err := parseServer(server, opts.InsecureLoopback)
	if err != nil {
		return nil, err
	}
	if grant == nil {
		return nil, errors.New("oauthclient: New needs a grant, for example *AuthorizationCode")
	}
	if err := grant.check(); err != nil {
		return nil, err
	}
	t := &Transport{
		opts: *opts, server: u, grant: grant, nonces: make(map[string]string),
		policy: metadata.Policy{InsecureLoopback: opts.InsecureLoopback, PrivateNetworks: opts.PrivateNetworks, TLS: opts.TLS},
	}
	t.opts.Base = cmp.Or(opts.Base, http.DefaultTransport)
	t.opts.Store = cmp.Or(opts.Store, NewMemoryStore())
	t.opts.Logger = cmp.Or(opts.Logger, slog.Default())
	t.http = t.policy.Client()
	t.idle = t.http.CloseIdleConnections
	if opts.Fetch != nil {
		t.http.Transport, t.idle = opts.Fetch, func() {} // the caller owns Fetch
	}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	return t, nil
}

// Close cancels a login in progress. It leaves the store unchanged, and always returns nil.
func (t *Transport) Close() error {
	t.cancel(ErrClosed)
	t.running.Wait()
	t.idle()
	return nil
}

// Login gets a token before any request needs it, with the scopes that a request without a token is
// challenged for. It also retries after a rejected login.
func (t *Transport) Login(ctx context.Context) error {
	t.mu.Lock()
	t.refused, t.enough = nil, nil
	used := t.issued.token
	t.mu.Unlock()
	return t.authorize(ctx, used, nil)
}

// Logout removes the token from the transport and the store, and asks the authorization server to
// revoke it (RFC 7009). It cancels a login or refresh in progress. The transport forgets the token
// even if Logout returns an error.
func (t *Transport) Logout(ctx context.Context) error {
	t.mu.Lock()
	for l := t.login; l != nil; l = t.login {
		t.mu.Unlock()
		l.cancel(errLoggedOut)
		<-l.done // it may still get a token
		t.mu.Lock()
	}
	h := t.issued
	t.issued, t.accepted = issuedToken{at: h.at}, false
	t.changes++
	t.mu.Unlock()
	if h.token == nil {
		stored, err := t.stored(ctx)
		if err != nil {
			return fmt.Errorf("oauthclient: %w", err)
		}
		if stored == nil {
			return nil
		}
		h = *stored
	}
	err := t.opts.Store.Delete(ctx, Key{h.token.Issuer, h.token.Resource})
	if e := t.revoke(ctx, &h); e != nil {
		err = errors.Join(err, fmt.Errorf("oauthclient: %w", e))
	}
	return err
}

// stored returns the token that an earlier run left in the store, or nil if there is none.
func (t *Transport) stored(ctx context.Context) (*issuedToken, error) {
	c, err := t.probe(ctx)
	if err != nil {
		return nil, err
	}
	at, err := t.discover(ctx, c)
	if err != nil {
		return nil, err
	}
	return t.loadToken(ctx, at)
}

// load reads a record.
func (t *Transport) load(ctx context.Context, key Key) (*Record, error) {
	r, err := t.opts.Store.Load(ctx, key)
	if err != nil {
		return nil, &metadata.TemporaryError{Err: err}
	}
	return r, nil
}

// loadToken returns the stored token for a discovery. It returns nil if the record is missing or
// incomplete.
func (t *Transport) loadToken(ctx context.Context, at *discovery) (*issuedToken, error) {
	r, err := t.load(ctx, Key{at.as.Issuer, at.resource})
	if err != nil || r == nil || r.Token == nil || r.Client == nil ||
		r.Token.Issuer != at.as.Issuer || r.Token.Resource != at.resource {
		return nil, err
	}
	return &issuedToken{r.Token, r.Client, at, true}, nil
}

// Token returns a token that has not expired, and logs in if there is none.
func (t *Transport) Token(ctx context.Context) (*Token, error) {
	for range maxAuthorizations {
		tok := t.current()
		if tok != nil && !tok.expired(time.Now()) {
			return tok, nil
		}
		if err := t.authorize(ctx, tok, nil); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("oauthclient: the authorization server issues tokens that have already expired")
}

func (t *Transport) current() *Token {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.issued.token
}

// AuthorizationContext returns a number that changes with the token, whose user may be another one.
// Caches keep private results apart by it, as that of package client does.
func (t *Transport) AuthorizationContext() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changes
}

// RoundTrip sends req with a token. If the server asks for another token, it gets one and sends req
// again.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !isFor(req, t.server) {
		return t.opts.Base.RoundTrip(req)
	}
	if req.Body != nil {
		defer req.Body.Close() // RoundTrip sends the body itself or copies of it
	}
	proved, authorized := false, 0 // proved: the token was sent with a second proof
	for first := true; ; first = false {
		tok := t.current()
		if tok != nil && tok.expired(time.Now()) && authorized == 0 && !t.exhausted() {
			if err := t.authorize(req.Context(), tok, &demand{}); err != nil {
				return nil, err
			}
			authorized++
			tok = t.current()
		}
		resp, err := t.send(req, tok, first)
		if err != nil {
			return nil, err
		}
		c, err := challengeOf(resp)
		switch {
		case err != nil:
			discard(resp)
			return nil, fmt.Errorf("oauthclient: %w", err)
		case c == nil && resp.StatusCode == http.StatusForbidden: // a new token would not help
			return resp, nil
		case resp.StatusCode != http.StatusUnauthorized && c == nil:
			t.letThrough(tok)
			return resp, nil
		case req.Body != nil && req.Body != http.NoBody && req.GetBody == nil:
			return resp, nil // the body cannot be sent again
		case tok != nil && t.opts.DPoP != nil && refusesProof(resp):
			if proved {
				return resp, nil // a new token would not help
			}
			proved = true
			discard(resp)
			continue
		case t.current() != tok: // another request has replaced it
			proved = false
			discard(resp)
			continue
		case authorized == maxAuthorizations || t.exhausted():
			return resp, nil
		}
		discard(resp)
		d := &demand{challenge: c, refused: true, stepUp: resp.StatusCode == http.StatusForbidden}
		if err := t.authorize(req.Context(), tok, d); err != nil {
			return nil, err
		}
		authorized++
		proved = false
	}
}

// send sends a copy of req with a token, or without one if tok is nil.
func (t *Transport) send(req *http.Request, tok *Token, first bool) (*http.Response, error) {
	r := req.Clone(req.Context())
	if req.GetBody != nil && !first {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		r.Body = body
	}
	if tok != nil {
		r.Header.Set("Authorization", tok.Type+" "+tok.AccessToken)
		if err := t.prove(r, tok.AccessToken); err != nil {
			return nil, err
		}
	}
	resp, err := t.opts.Base.RoundTrip(r)
	if err == nil {
		t.keepNonce(req.URL, resp.Header)
	}
	return resp, err
}

// challengeOf returns the challenge of a response that a new token can satisfy: any challenge of a
// 401, and the insufficient_scope challenge of a 403. It returns nil if there is none.
func challengeOf(resp *http.Response) (found *metadata.Challenge, err error) {
	forbidden := resp.StatusCode == http.StatusForbidden
	if resp.StatusCode != http.StatusUnauthorized && !forbidden {
		return nil, nil
	}
	list, _ := metadata.ParseChallenges(resp.Header.Values("WWW-Authenticate")) // the valid ones
	for i := range list {
		c := &list[i]
		why := c.Param("error")
		if !c.Is("Bearer") && !c.Is(dpop.Scheme) {
			continue
		}
		if forbidden && why != "insufficient_scope" && (why != "" || c.Param("scope") == "") {
			continue // some servers send only the scopes, which means the same
		}
		if found == nil || found.Param("resource_metadata") == "" && c.Param("resource_metadata") != "" {
			found = c
		}
	}
	if found == nil {
		return nil, nil
	}
	if n := len(found.Param("scope")); n > maxScopeBytes {
		return nil, fmt.Errorf("the server's challenge has %d bytes of scopes; at most %d are accepted", n, maxScopeBytes)
	}
	return found, nil
}

// refusesProof reports whether a response refuses the proof of a request, and not its token: it is
// too old, or needs another nonce (RFC 9449, sections 7.1 and 9). A server that also accepts other
// schemes sends several challenges.
func refusesProof(resp *http.Response) bool {
	list, _ := metadata.ParseChallenges(resp.Header.Values("WWW-Authenticate"))
	return resp.StatusCode == http.StatusUnauthorized && slices.ContainsFunc(list, func(c metadata.Challenge) bool {
		why := c.Param("error")
		return c.Is(dpop.Scheme) && (why == "use_dpop_nonce" || why == "invalid_dpop_proof")
	})
}

func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, maxDrained) // so that the connection can be reused
	_ = resp.Body.Close()
}

func (t *Transport) letThrough(tok *Token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tok != nil && tok == t.issued.token {
		t.accepted, t.logins = true, nil
	}
}

// exhausted reports whether the requests of the last hour have caused as many logins as they may,
// none of which led to an accepted request.
func (t *Transport) exhausted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.logins)
	return n >= maxLogins && time.Since(t.logins[n-maxLogins]) < time.Hour
}

// A demand is why a request needs a new token. A nil demand means that the program asks for one.
type demand struct {
	refused   bool                // the server has refused the request; otherwise the token has expired
	challenge *metadata.Challenge // of the response; nil if it has none
	stepUp    bool                // the challenge asks for more scopes
}

// authorize replaces the token used. It starts a login, or waits for the login in progress.
func (t *Transport) authorize(ctx context.Context, used *Token, d *demand) error {
	stepUp := d != nil && d.stepUp
	t.mu.Lock()
	switch {
	case t.issued.token != used: // another request has replaced it
		t.mu.Unlock()
		return nil
	case t.refused != nil:
		defer t.mu.Unlock()
		return t.refused
	case stepUp && t.enough != nil:
		defer t.mu.Unlock()
		return t.enough
	case t.ctx.Err() != nil:
		t.mu.Unlock()
		return ErrClosed
	}
	joins := t.login != nil
	if !joins {
		ctx, stop := context.WithCancelCause(t.ctx)
		l := &pendingLogin{done: make(chan struct{}), stepUp: stepUp, cancel: stop}
		t.login = l
		ctx, cancel := context.WithTimeoutCause(ctx, loginTimeout, errTooLate)
		// Ends within loginTimeout, or with Close or Logout.
		t.running.Go(func() {
			defer stop(nil)
			defer cancel()
			t.run(ctx, l, used, d)
		})
	}
	l := t.login
	if joins && stepUp {
		t.wanted = union(t.wanted, d.challenge.Scopes())
	}
	t.mu.Unlock()
	select {
	case <-l.done:
		if l.stepUp && !stepUp {
			return nil // the caller tries again, and needs no more scopes
		}
		return l.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run performs one login.
func (t *Transport) run(ctx context.Context, l *pendingLogin, used *Token, d *demand) {
	got, err := t.obtain(ctx, used, d)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		l.err, t.wanted = fmt.Errorf("oauthclient: %w", err), nil
		switch {
		case isTemporary(err) || ctx.Err() != nil:
		case l.stepUp:
			t.enough = l.err // the token is still good
		default:
			t.refused = l.err
		}
	} else {
		t.issued, t.accepted = *got, false
		t.changes++
	}
	t.login = nil
	close(l.done)
}

// save stores a token. If the store fails, the transport still uses the token, and deletes the older
// one in the store, whose refresh token may be used up. Saving is not cancelled with the login.
func (t *Transport) save(ctx context.Context, h *issuedToken) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	key := Key{h.token.Issuer, h.token.Resource}
	if t.keep(ctx, key, &Record{Client: h.client, Token: h.token}) != nil {
		_ = t.keep(ctx, key, nil)
	}
}

// keep saves a record, or deletes it if r is nil. It logs an error of the store, because the program
// goes on without the record.
func (t *Transport) keep(ctx context.Context, key Key, r *Record) (err error) {
	if r == nil {
		err = t.opts.Store.Delete(ctx, key)
	} else {
		err = t.opts.Store.Save(ctx, key, r)
	}
	if err != nil {
		t.opts.Logger.WarnContext(ctx, "oauthclient: the store failed to keep a token or a registration",
			"issuer", key.Issuer, "resource", key.Resource, "error", err)
	}
	return err
}

// isTemporary reports whether a retry may succeed: errors of the store and the network, and
// overloaded servers.
func isTemporary(err error) bool {
	if status, ok := errors.AsType[*metadata.StatusError](err); ok {
		return status.Status/100 == 5 || status.Status == http.StatusTooManyRequests
	}
	if g, ok := errors.AsType[*GrantError](err); ok {
		return g.Status/100 == 5 || g.Status == http.StatusTooManyRequests
	}
	if _, ok := errors.AsType[*metadata.TemporaryError](err); ok {
		return true
	}
	_, network := errors.AsType[net.Error](err)
	return network
}

// obtain gets a token by refreshing the previous one, from the store, or by the grant.
func (t *Transport) obtain(ctx context.Context, used *Token, d *demand) (*issuedToken, error) {
	t.mu.Lock()
	client, at, accepted := t.issued.client, t.issued.at, t.accepted || t.issued.stored
	t.mu.Unlock()
	var c *metadata.Challenge
	var err error
	refused := d != nil && d.refused
	if refused {
		c = d.challenge
	} else if at == nil {
		if c, err = t.probe(ctx); err != nil {
			return nil, err
		}
	}
	if refused || at == nil {
		if at, err = t.discover(ctx, c); err != nil {
			return nil, err
		}
	}
	if used != nil && (used.Issuer != at.as.Issuer || used.Resource != at.resource) {
		used = nil // tokens of one server are never shown to another
	}
	if d == nil || !d.stepUp {
		// A new token that was never accepted is not worth refreshing.
		before := &issuedToken{token: used, client: client, at: at}
		if used == nil || !accepted && !used.expired(time.Now()) {
			before.client = nil
		}
		got, err := t.renew(ctx, before)
		if got != nil || err != nil {
			return got, err
		}
		used = before.token
	}
	t.mu.Lock()
	if d != nil {
		t.logins = append(t.logins[max(0, len(t.logins)-maxLogins+1):], time.Now())
	}
	scopes := union(scopesFor(used, c, at), t.wanted)
	t.wanted = nil
	t.mu.Unlock()
	got, err := t.grant.get(ctx, &tokenRequest{t, at, scopes})
	if err != nil && at.guessed {
		err = fmt.Errorf("the server requires authentication but names no authorization server "+
			"(neither WWW-Authenticate nor metadata), and is not one itself; "+
			"send a token in the header Authorization instead: %w", err)
	}
	if err != nil {
		return nil, err
	}
	t.save(ctx, got)
	return got, nil
}

// renew returns the token that another program put into the store, or refreshes the previous one if
// its client is known. It returns nil if a login is needed. It then leaves the newest known token
// in h.
func (t *Transport) renew(ctx context.Context, h *issuedToken) (*issuedToken, error) {
	defer t.lock(ctx, Key{h.at.as.Issuer, h.at.resource})() // another program may be refreshing the token
	got, err := t.fromStore(ctx, h)
	if got != nil || err != nil || h.client == nil || h.token == nil || h.token.RefreshToken == "" {
		return got, err
	}
	got, err = t.refresh(ctx, h)
	if err != nil {
		if _, ok := errors.AsType[*GrantError](err); ok && !isTemporary(err) {
			return nil, nil
		}
		return nil, err
	}
	t.save(ctx, got)
	return got, nil
}

// fromStore returns the stored token if it is newer than h and usable. If it is newer but not
// usable, fromStore copies it into h.
func (t *Transport) fromStore(ctx context.Context, h *issuedToken) (*issuedToken, error) {
	got, err := t.loadToken(ctx, h.at)
	if got == nil || err != nil || h.token != nil && got.token.AccessToken == h.token.AccessToken {
		return nil, err
	}
	*h = *got
	if !t.usable(got.token) {
		return nil, nil
	}
	return got, nil
}

// lock prevents other users of the store from refreshing the same token. Stores without locks are
// used without.
func (t *Transport) lock(ctx context.Context, key Key) (unlock func()) {
	l, ok := t.opts.Store.(Locker)
	if !ok {
		return func() {}
	}
	unlock, err := l.Lock(ctx, key)
	if err != nil {
		t.opts.Logger.WarnContext(ctx, "oauthclient: the store cannot be locked; "+
			"programs that share it may refresh at the same time", "error", err)
		return func() {}
	}
	return unlock
}

// probe sends a request without a token to get the server's challenge, which names the metadata and
// the initial scopes. It returns nil if the server does not challenge the request.
func (t *Transport) probe(ctx context.Context) (*metadata.Challenge, error) {
	bound, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(bound, http.MethodGet, t.server.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream") // a GET opens an event stream
	resp, err := t.opts.Base.RoundTrip(req)
	switch {
	case err != nil && bound.Err() != nil && ctx.Err() == nil: // the server accepts the stream without a token
		return nil, nil
	case err != nil:
		return nil, &metadata.TemporaryError{Err: err}
	}
	defer resp.Body.Close() // may be an endless stream
	if resp.StatusCode != http.StatusUnauthorized {
		return nil, nil
	}
	return challengeOf(resp)
}

// usable reports whether a stored token can be sent: it has not expired, and it is bound to the key of
// the transport, or to none if the transport has none.
func (t *Transport) usable(tok *Token) bool {
	return !tok.expired(time.Now()) && tok.AccessToken != "" && tok.Thumbprint == t.thumbprint()
}

func (t *Transport) thumbprint() string {
	if t.opts.DPoP == nil {
		return ""
	}
	return t.opts.DPoP.Thumbprint()
}

// scopesFor returns the scopes to request: those of the challenge, or otherwise all that the
// resource supports. It adds the previously requested scopes, so that a new token allows what the
// old one did.
func scopesFor(used *Token, c *metadata.Challenge, at *discovery) []string {
	scopes := at.supported
	if c != nil && len(c.Scopes()) > 0 {
		scopes = c.Scopes()
	}
	if used != nil {
		return union(used.Requested, scopes)
	}
	return slices.Clone(scopes)
}

// refresh exchanges the refresh token for new tokens (RFC 6749, section 6).
func (t *Transport) refresh(ctx context.Context, h *issuedToken) (*issuedToken, error) {
	q := &tokenRequest{t, h.at, h.token.Requested}
	form := q.form("refresh_token", nil)
	form.Set("refresh_token", h.token.RefreshToken)
	r, err := t.ask(ctx, h.at.as, h.client, form)
	if err != nil {
		return nil, err
	}
	got, err := q.tokenOf(r, h.client)
	if err != nil {
		return nil, err
	}
	got.token.RefreshToken = cmp.Or(got.token.RefreshToken, h.token.RefreshToken) // it stays valid if it is not replaced
	if r.Scope == "" {
		got.token.Granted = h.token.Granted
	}
	return got, nil
}
