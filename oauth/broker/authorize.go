package broker

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/mcpkit/mcpkit-go/fleet"
)

const (
	maxCookie  = 2400 // bytes of the cookie of a login
	maxPending = 3    // logins of a browser at a time
)

// A login is an authorization request until it ends with a redirect to the client. It is in a sealed
// cookie: it takes no space in the broker, and only the browser that began it can finish it.
type login struct {
	ID         string    `json:"i"` // the state of the request to the provider
	Client     string    `json:"c"` // digest of the ID
	Name       string    `json:"n,omitempty"`
	Host       string    `json:"h,omitempty"` // that vouches for the client
	Refresh    bool      `json:"f,omitempty"`
	Redirect   string    `json:"r"`
	State      string    `json:"s,omitempty"`
	Challenge  string    `json:"p"`
	Thumbprint string    `json:"t,omitempty"`
	Scopes     []string  `json:"a,omitempty"`
	Nonce      string    `json:"o"`
	Verifier   string    `json:"v"`
	Expires    time.Time `json:"e"`
	Grant      string    `json:"g,omitempty"` // key of the grant, once the provider knows the user
}

// back returns the redirect URI of the client.
func (l *login) back() *url.URL { return must(url.Parse(l.Redirect)) }

// begin is the authorization endpoint. It sends the user to the provider.
func (b *Broker) begin(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	id, redirect := q.Get("client_id"), q.Get("redirect_uri")
	c, err := b.client(r.Context(), id)
	if err == nil && (len(q["client_id"]) > 1 || len(q["redirect_uri"]) > 1 || !c.allows(redirect)) {
		err = errors.New("the redirect URI is not that of the program")
	}
	if err != nil {
		b.fail(w, r, http.StatusBadRequest, textUnknown, err)
		return
	}
	l := &login{
		ID: rand.Text(), Client: fleet.Digest(id), Name: c.Name, Host: c.host,
		Refresh: slices.Contains(c.Grants, grantRefresh), Redirect: redirect, State: q.Get("state"),
		Challenge: q.Get("code_challenge"), Thumbprint: q.Get("dpop_jkt"), Scopes: b.requested(q.Get("scope")),
		Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(),
		Expires: time.Now().Add(loginLifetime),
	}
	if err := b.checkRequest(q); err != nil {
		b.refuseLogin(w, r, l, err)
		return
	}
	b.sendUpstream(w, r, l, "")
}

// checkRequest checks what an authorization request says besides its client.
func (b *Broker) checkRequest(q url.Values) *refusal {
	for name, values := range q {
		if len(values) > 1 && name != "resource" {
			return refuse(codeInvalidRequest, "a parameter is repeated")
		}
	}
	switch {
	case q.Has("request") || q.Has("request_uri"):
		return refuse("request_not_supported", "request objects are not supported")
	case q.Get("response_type") != "code":
		return refuse("unsupported_response_type", "the response_type must be code")
	case q.Has("response_mode") && q.Get("response_mode") != "query":
		return refuse(codeInvalidRequest, "the response_mode must be query")
	case q.Get("code_challenge_method") != "S256" || !isDigest(q.Get("code_challenge")):
		return refuse(codeInvalidRequest, "a code_challenge with the method S256 is required")
	case q.Has("dpop_jkt") && !isDigest(q.Get("dpop_jkt")):
		return refuse(codeInvalidRequest, "the dpop_jkt is not a thumbprint")
	case len(b.scopes) > 0 && len(b.requested(q.Get("scope"))) == 0:
		return refuse("invalid_scope", "none of the scopes exists")
	}
	return b.checkTarget(q)
}

// isDigest reports whether s is a SHA-256 as base64url.
func isDigest(s string) bool {
	sum, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil && len(sum) == sha256.Size
}

// checkTarget checks the resource parameters of a request (RFC 8707). Tokens are for one resource, also
// if a client that does not know the parameter leaves it out. Many clients add a slash to an origin.
func (b *Broker) checkTarget(form url.Values) *refusal {
	for _, resource := range form["resource"] {
		if strings.TrimSuffix(resource, "/") != strings.TrimSuffix(b.opts.Resource, "/") {
			return refuse("invalid_target", "this server issues tokens for another resource only")
		}
	}
	return nil
}

// requested returns the scopes of a request that exist, or all if it names none.
func (b *Broker) requested(scope string) []string {
	asked := strings.Fields(scope)
	if len(asked) == 0 {
		return b.scopes
	}
	return slices.DeleteFunc(slices.Clone(b.scopes), func(s string) bool { return !slices.Contains(asked, s) })
}

// sendUpstream sends the browser to the provider. prompt is a parameter of OpenID Connect; "" for none.
func (b *Broker) sendUpstream(w http.ResponseWriter, r *http.Request, l *login, prompt string) {
	config, err := b.upstream.config(b.outgoing(r.Context()))
	if err != nil {
		b.fail(w, r, http.StatusBadGateway, textProvider, err)
		return
	}
	if err := b.setCookie(w, r, l); err != nil {
		b.refuseLogin(w, r, l, refuse(codeInvalidRequest, "the request is too long"))
		return
	}
	params := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(l.Verifier), oidc.Nonce(l.Nonce)}
	for name, value := range b.opts.Provider.Params {
		params = append(params, oauth2.SetAuthURLParam(name, value))
	}
	if prompt != "" {
		params = append(params, oauth2.SetAuthURLParam("prompt", prompt))
	}
	http.Redirect(w, r, config.AuthCodeURL(l.ID, params...), http.StatusFound)
}

// callback is where the provider sends the browser back.
func (b *Broker) callback(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	l, err := b.cookie(r, q.Get("state"))
	if err == nil && (len(q["code"]) > 1 || len(q["iss"]) > 1 || q.Has("iss") && q.Get("iss") != b.opts.Provider.Issuer) {
		err = errors.New("the response is not from the provider")
	}
	if err != nil || l.Grant != "" {
		b.fail(w, r, http.StatusBadRequest, textOther, cmp.Or(err, errors.New("the response came twice")))
		return
	}
	if q.Get("code") == "" {
		b.refuseLogin(w, r, l, refuse(codeAccessDenied, "the login at the provider did not succeed"))
		return
	}
	g, err := b.identify(r.Context(), l, q.Get("code"))
	switch {
	case errors.Is(err, ErrRefused):
		b.opts.Logger.InfoContext(r.Context(), "broker: a user is not admitted", "reason", err)
		b.show(w, r, http.StatusForbidden, &page{Title: textNotAdmitted, Login: l.ID})
		return
	case errors.Is(err, ErrEnded): // the page was loaded again, for example, after the response was lost
		b.fail(w, r, http.StatusBadRequest, textOther, err)
		return
	case err != nil:
		b.fail(w, r, http.StatusBadGateway, textProvider, err)
		return
	}
	l.Grant = rand.Text()
	if err := b.create(r.Context(), l.Grant, g); err != nil {
		b.fail(w, r, http.StatusServiceUnavailable, textUnavailable, err)
		return
	}
	if b.consented(r.Context(), g) {
		if _, back, ok := b.approve(w, r, l); ok {
			b.redirect(w, r, l, back)
		}
		return
	}
	if err := b.setCookie(w, r, l); err != nil {
		b.fail(w, r, http.StatusServiceUnavailable, textUnavailable, err)
		return
	}
	// The code of the provider does not stay in the history, and the page can be loaded again.
	http.Redirect(w, r, b.url("consent")+"?login="+l.ID, http.StatusSeeOther)
}

// identify redeems the code of the provider, and returns the grant of its user. The error is
// ErrRefused if the user may not log in.
func (b *Broker) identify(ctx context.Context, l *login, code string) (*grant, error) {
	ctx, cancel := context.WithTimeout(b.outgoing(ctx), askTimeout)
	defer cancel()
	config, err := b.upstream.config(ctx)
	if err != nil {
		return nil, err
	}
	t, err := config.Exchange(ctx, code, oauth2.VerifierOption(l.Verifier))
	if err != nil {
		return nil, noToken(err)
	}
	u, err := b.upstream.user(ctx, t, l.Nonce, nil)
	if err != nil {
		return nil, err
	}
	scopes, err := b.admit(ctx, u, l.Scopes)
	if err != nil {
		return nil, err
	}
	return &grant{
		Client: l.Client, User: *u, Scopes: scopes, Refresh: l.Refresh, Begun: time.Now(), Upstream: *t,
		Redirect: l.Redirect, Challenge: l.Challenge, Thumbprint: l.Thumbprint,
	}, nil
}

// admit decides whether a user may log in, and which of the scopes the user gets. The error is
// ErrRefused if the user may not.
func (b *Broker) admit(ctx context.Context, u *User, asked []string) ([]string, error) {
	in := func(groups []string) bool {
		return slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(u.Groups, g) })
	}
	switch {
	case u.Subject == "":
		return nil, fmt.Errorf("%w: the provider does not name the user", ErrRefused)
	case len(b.opts.Domains) > 0 &&
		!slices.ContainsFunc(b.opts.Domains, func(d string) bool { return u.in(d, b.opts.Provider.Issuer) }):
		return nil, fmt.Errorf("%w: the user has no verified address of the domains (if ID tokens lack it, set UserInfo)", ErrRefused)
	case len(b.opts.Groups) > 0 && !in(b.opts.Groups):
		return nil, fmt.Errorf("%w: the user is in none of the groups", ErrRefused)
	}
	scopes := slices.DeleteFunc(slices.Clone(asked), func(s string) bool {
		groups, known := b.opts.Scopes[s]
		return !known || len(groups) > 0 && !in(groups)
	})
	if b.opts.Decide != nil {
		decided, err := b.opts.Decide(ctx, u, slices.Clone(scopes))
		if err != nil {
			return nil, err
		}
		scopes = slices.DeleteFunc(scopes, func(s string) bool { return !slices.Contains(decided, s) })
	}
	if len(scopes) == 0 && len(b.scopes) > 0 {
		return nil, fmt.Errorf("%w: the user has none of the requested scopes", ErrRefused)
	}
	return scopes, nil
}

// showConsent shows the page that asks the user.
func (b *Broker) showConsent(w http.ResponseWriter, r *http.Request) {
	l, err := b.cookie(r, r.URL.Query().Get("login"))
	if err != nil || l.Grant == "" {
		b.fail(w, r, http.StatusBadRequest, textOther, err)
		return
	}
	g, err := b.read(r.Context(), l.Grant)
	if err != nil {
		b.failRead(w, r, err)
		return
	}
	b.askUser(w, r, l, g)
}

// decide takes the user's decision. Only the broker's own page sends it: the cookie is not sent with
// requests of other sites, whose pages do not know the ID of the login, either.
func (b *Broker) decide(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := errors.Join(http.NewCrossOriginProtection().Check(r), r.ParseForm()); err != nil {
		b.fail(w, r, http.StatusBadRequest, textBadRequest, err)
		return
	}
	l, err := b.cookie(r, r.PostForm.Get("login"))
	if err != nil || l.Grant == "" {
		b.fail(w, r, http.StatusBadRequest, textOther, err)
		return
	}
	switch r.PostForm.Get("decision") {
	case "allow":
		if g, back, ok := b.approve(w, r, l); ok {
			if !isLoopback(l.back()) {
				b.remember(r.Context(), g)
			}
			b.leave(w, r, l, back)
		}
	default:
		_ = b.grants.Delete(r.Context(), l.Grant, 0) // otherwise it expires
		b.leave(w, r, l, b.backURL(l, refuse(codeAccessDenied, "the user has not allowed it"), ""))
	}
}

// switchAccount begins a login again, with another account of the provider.
func (b *Broker) switchAccount(w http.ResponseWriter, r *http.Request) {
	l, err := b.cookie(r, r.URL.Query().Get("login"))
	if err != nil {
		b.fail(w, r, http.StatusBadRequest, textOther, err)
		return
	}
	_ = b.grants.Delete(r.Context(), l.Grant, 0) // otherwise it expires
	b.dropCookie(w, cookieName(l.ID, b.secure))
	l.ID, l.Grant, l.Nonce, l.Verifier = rand.Text(), "", rand.Text(), oauth2.GenerateVerifier()
	b.sendUpstream(w, r, l, strings.TrimSpace(b.opts.Provider.Params["prompt"]+" select_account"))
}

// approve issues the code of a login, and returns the URL of the client with it. If that is impossible,
// it shows why.
func (b *Broker) approve(w http.ResponseWriter, r *http.Request, l *login) (g *grant, back string, ok bool) {
	g, err := b.change(r.Context(), l.Grant, func(g *grant) error {
		if g.Redeemed {
			return ErrEnded
		}
		if g.Approved.IsZero() { // otherwise the user clicked twice
			g.Approved = time.Now()
		}
		return nil
	})
	if err != nil {
		b.failRead(w, r, err)
		return nil, "", false
	}
	b.opts.Logger.InfoContext(r.Context(), "broker: a user has logged in", "subject", g.User.Subject, "scopes", g.Scopes)
	return g, b.backURL(l, nil, must(b.keys.write("code", l.Grant))), true
}

// redirect ends a login by sending the browser to the client.
func (b *Broker) redirect(w http.ResponseWriter, r *http.Request, l *login, back string) {
	b.dropCookie(w, cookieName(l.ID, b.secure))
	http.Redirect(w, r, back, http.StatusSeeOther)
}

// leave ends a login like redirect, after a form was sent. Browsers may apply form-action to all
// redirects that follow a form, also those of the client, so it is a page that leads on.
func (b *Broker) leave(w http.ResponseWriter, r *http.Request, l *login, back string) {
	b.dropCookie(w, cookieName(l.ID, b.secure))
	w.Header().Set("Refresh", "0; url="+back)
	b.show(w, r, http.StatusOK, &page{Title: textDone, Back: back})
}

// backURL returns the URL of the response to the client (RFC 6749, sections 4.1.2; RFC 9207).
func (b *Broker) backURL(l *login, refused *refusal, code string) string {
	back := l.back()
	q := back.Query()
	q.Set("iss", b.opts.Issuer)
	if l.State != "" {
		q.Set("state", l.State)
	}
	if refused != nil {
		q.Set("error", refused.Code)
		q.Set("error_description", refused.Description)
	} else {
		q.Set("code", code)
	}
	back.RawQuery = q.Encode()
	return back.String()
}

// refuseLogin ends a login with an error, before the user has decided anything. Anyone may register a
// redirect URI, so the broker would be an open redirector if it sent the browser there (RFC 9700,
// section 4.11.2): the user follows a link instead, except to a program on the own machine.
func (b *Broker) refuseLogin(w http.ResponseWriter, r *http.Request, l *login, refused *refusal) {
	if isLoopback(l.back()) {
		b.redirect(w, r, l, b.backURL(l, refused, ""))
		return
	}
	b.opts.Logger.DebugContext(r.Context(), "broker: a login is refused", "reason", refused)
	b.show(w, r, http.StatusBadRequest, &page{Title: textRefused, Back: b.backURL(l, refused, "")})
}

// failRead shows why a grant could not be read.
func (b *Broker) failRead(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, ErrEnded) {
		b.fail(w, r, http.StatusBadRequest, textOther, err)
		return
	}
	b.fail(w, r, http.StatusServiceUnavailable, textUnavailable, err)
}

// cookieName returns the name of the cookie of a login. The prefix keeps other hosts of the domain from
// setting it.
func cookieName(id string, secure bool) string {
	name := cookiePrefix + fleet.Digest(id)[:8]
	if secure {
		name = "__Host-" + name
	}
	return name
}

const cookiePrefix = "mcp-login-"

// setCookie keeps a login in the browser, and drops the oldest ones if there are too many.
func (b *Broker) setCookie(w http.ResponseWriter, r *http.Request, l *login) error {
	text, err := b.keys.write("login", l)
	if err != nil {
		return err
	}
	if len(text) > maxCookie {
		return errors.New("the cookie would be too long")
	}
	name := cookieName(l.ID, b.secure)
	var others []string
	for _, c := range r.Cookies() {
		if strings.HasPrefix(strings.TrimPrefix(c.Name, "__Host-"), cookiePrefix) && c.Name != name {
			others = append(others, c.Name)
		}
	}
	for _, old := range others[:max(len(others)-maxPending+1, 0)] {
		b.dropCookie(w, old)
	}
	http.SetCookie(w, b.newCookie(name, text, int(loginLifetime/time.Second)))
	return nil
}

func (b *Broker) dropCookie(w http.ResponseWriter, name string) {
	http.SetCookie(w, b.newCookie(name, "", -1))
}

func (b *Broker) newCookie(name, text string, age int) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: text, Path: "/", MaxAge: age, Secure: b.secure, HttpOnly: true,
		SameSite: http.SameSiteLaxMode, // the provider's redirect is a request of another site
	}
}

// cookie returns the login with an ID, which the browser must have begun.
func (b *Broker) cookie(r *http.Request, id string) (*login, error) {
	c, err := r.Cookie(cookieName(id, b.secure))
	if err != nil {
		return nil, errors.New("the browser has no cookie of the login")
	}
	l := new(login)
	switch {
	case !b.keys.read("login", c.Value, l) || subtle.ConstantTimeCompare([]byte(l.ID), []byte(id)) != 1:
		return nil, errors.New("the cookie is of another login")
	case time.Now().After(l.Expires):
		return nil, errors.New("the login has expired")
	}
	return l, nil
}
