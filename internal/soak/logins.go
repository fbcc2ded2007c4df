package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	fleets "github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/broker"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
)

const (
	people   = 16  // who log in at the same time
	struckIn = 10  // one of so many logins loses a replica
	attempts = 300 // to send a request, before a person gives up
	callback = "http://127.0.0.1:1/callback"

	// headerStrike says after how long the replica of a request is killed. The response is lost.
	headerStrike = "X-Strike"
)

// legs are the requests of a login, in order. If the response to one of ending is lost, the login may
// end, since codes and refresh tokens can be used once.
var (
	legs   = []string{"GET /authorize", "GET /callback", "GET /consent", "POST /consent", grantCode, grantRefresh}
	ending = []string{"GET /callback", grantCode, grantRefresh}
)

const (
	grantCode    = "authorization_code"
	grantRefresh = "refresh_token"
)

// logIn lets people log in until stop is closed. Replicas of a broker are killed in each leg in turn.
func logIn(ctx context.Context, stop <-chan struct{}, redisURL string, r *report) error {
	ctx, end := context.WithCancel(ctx)
	provider, err := newProvider()
	if err != nil {
		end()
		return err
	}
	defer provider.Close()
	f := newFleet(redisURL, "", "")
	front := httptest.NewServer(f.proxy)
	defer front.Close()
	f.env = append(f.env, envLogins+"="+front.URL+" "+provider.Issuer)
	var started, all sync.WaitGroup
	defer started.Wait()
	defer end()
	for i := range replicas {
		if err := f.start(ctx, i); err != nil {
			return err
		}
		started.Go(func() { f.keep(ctx, i, r) }) // ends when ctx does
	}
	_, text, err := read(http.Post(front.URL+"/register", "application/json", strings.NewReader(
		`{"redirect_uris":["`+callback+`"],"grant_types":["`+grantCode+`","`+grantRefresh+`"]}`)))
	var program struct {
		ID string `json:"client_id"`
	}
	if err := errors.Join(err, json.Unmarshal([]byte(text), &program)); err != nil {
		return err
	}
	for i := range people {
		all.Go(func() { // ends when stop is closed
			for n := 0; !closed(stop); n++ {
				p := newPerson(fmt.Sprintf("user-%d-%d", i, n), front.URL, r)
				p.client = program.ID
				if n%struckIn == 0 {
					p.strike = legs[(n/struckIn+i)%len(legs)]
				}
				if err := p.login(); err != nil {
					r.fail("%s: %v", p.name, err)
				}
				r.add(&r.Logins)
			}
		})
	}
	all.Wait()
	return nil
}

func closed(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// serveLogins serves a broker in front of a resource that says whose tokens a request has.
func serveLogins(ctx context.Context, urls string, engine fleets.Engine, key []byte, logger *slog.Logger) error {
	issuer, provider, _ := strings.Cut(urls, " ")
	b, err := broker.New(broker.Options{
		Issuer: issuer, Resource: issuer + "/mcp", InsecureLoopback: true, Decide: broker.Anyone,
		Provider: broker.Provider{Issuer: provider, ClientID: "broker", ClientSecret: "upstream-secret"},
		Keys:     [][]byte{key}, Engine: engine, Logger: logger,
	})
	if err != nil {
		return err
	}
	handler := b.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t, err := b.Upstream(r.Context()).Token(); err == nil {
			fmt.Fprint(w, oauth.FromContext(r.Context()).Subject, " ", t.AccessToken)
		}
	}))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // otherwise the proxy may send a request again by itself
		after, err := time.ParseDuration(r.Header.Get(headerStrike))
		if err != nil {
			handler.ServeHTTP(w, r)
			return
		}
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			return
		}
		time.AfterFunc(after, func() { _ = self.Kill() })
		handler.ServeHTTP(w, r)
		<-ctx.Done()
	}))
	defer web.Close()
	fmt.Println(web.Listener.Addr()) // the parent reads it
	<-ctx.Done()
	return nil
}

// A provider logs in the user whom a cookie names. Its codes and refresh tokens are used once.
type provider struct {
	*oauthtest.Server
	mu   sync.Mutex
	kept map[string][2]string // user and nonce by code or refresh token; guarded by mu
}

func newProvider() (p *provider, err error) {
	p = &provider{kept: map[string][2]string{}}
	p.Server, err = oauthtest.Start(&oauthtest.Options{
		Wrap: func(next http.Handler) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/", next)
			mux.HandleFunc("GET /authorize", p.authorize)
			mux.HandleFunc("POST /token", p.token)
			return mux
		},
		Metadata: func(doc map[string]any) { doc["id_token_signing_alg_values_supported"] = []string{"ES256"} },
	})
	return p, err
}

func (p *provider) keep(user, nonce string) (name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name = rand.Text()
	p.kept[name] = [2]string{user, nonce}
	return name
}

func (p *provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	user, err := r.Cookie("user")
	if err != nil {
		http.Error(w, "no user", http.StatusBadRequest)
		return
	}
	back := url.Values{"code": {p.keep(user.Value, q.Get("nonce"))}, "state": {q.Get("state")}, "iss": {p.Issuer}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	used := r.FormValue("code") + r.FormValue(grantRefresh) // one of them is ""
	pause := func() { _ = sleep(r.Context(), mathrand.N(20*time.Millisecond)) }
	pause()
	p.mu.Lock()
	who, ok := p.kept[used]
	delete(p.kept, used)
	p.mu.Unlock()
	pause()
	w.Header().Set("Content-Type", "application/json")
	if !ok {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant"}`)
		return
	}
	claims := map[string]any{"iss": p.Issuer, "aud": "broker", "sub": who[0], "nonce": who[1], "iat": 1, "exp": 1 << 40}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"access_token": "of " + who[0], "token_type": "Bearer", "expires_in": 3600,
		"refresh_token": p.keep(who[0], who[1]), "id_token": p.Sign("JWT", claims),
	})
}

// A person logs in with a browser and a program. Both send a request again if its response is lost.
type person struct {
	name   string
	site   string
	client string // ID of the program
	strike string // the leg in which a replica is to be killed; "" for none, and afterwards
	ended  bool   // the login may have ended, since a response was lost
	report *report
	http   *http.Client
}

func newPerson(name, site string, r *report) *person {
	p := &person{name: name, site: site, report: r}
	jar, _ := cookiejar.New(nil) // never fails
	jar.SetCookies(&url.URL{Scheme: "http", Host: "127.0.0.1"}, []*http.Cookie{{Name: "user", Value: name}})
	p.http = &http.Client{Jar: jar, Transport: p, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), callback) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	return p
}

// RoundTrip implements [http.RoundTripper].
func (p *person) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body) // from memory
	}
	form, _ := url.ParseQuery(string(body)) // "" if it is none
	leg := cmp.Or(form.Get("grant_type"), r.Method+" "+r.URL.Path)
	for range attempts {
		again := r.Clone(r.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		if p.strike == leg && "http://"+r.URL.Host == p.site {
			again.Header.Set(headerStrike, mathrand.N(60*time.Millisecond>>mathrand.IntN(6)).String())
			p.report.strike(leg)
			p.strike = ""
		}
		resp, text, err := read(http.DefaultTransport.RoundTrip(again))
		lost := err != nil || resp.StatusCode == http.StatusBadGateway && text == "" // as the proxy says
		if !lost && resp.Header.Get("Retry-After") == "" {
			resp.Body = io.NopCloser(strings.NewReader(text))
			return resp, nil
		}
		p.ended = p.ended || lost && slices.Contains(ending, leg)
		if err := sleep(r.Context(), 100*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no response to %s %s", r.Method, r.URL)
}

// read returns the body of a response.
func read(resp *http.Response, err error) (*http.Response, string, error) {
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

var consentForm = regexp.MustCompile(`name="login" value="([^"]+)"`)

// visit opens the page of the login and allows what it asks for. It returns the code, or "" if a page
// says to log in again.
func (p *person) visit(verifier string) (code string, err error) {
	p.ended = false
	resp, page, err := read(p.http.Get(p.site + "/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {p.client}, "redirect_uri": {callback}, "code_challenge_method": {"S256"},
		"code_challenge": {oauth2.S256ChallengeFromVerifier(verifier)},
	}.Encode()))
	if err != nil {
		return "", err
	}
	if form := consentForm.FindStringSubmatch(page); form != nil {
		resp, page, err = read(p.http.PostForm(p.site+"/consent", url.Values{"login": {form[1]}, "decision": {"allow"}}))
		if err != nil {
			return "", err
		}
		back, _ := url.Parse(strings.TrimPrefix(resp.Header.Get("Refresh"), "0; url="))
		code = back.Query().Get("code")
	}
	if code == "" && !strings.Contains(page, "Log in again.") {
		return "", fmt.Errorf("%s does not say what to do: %s", resp.Request.URL, page)
	}
	return code, nil
}

type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Error   string
}

// ask sends a request to the token endpoint.
func (p *person) ask(form url.Values) (t tokens, err error) {
	p.ended = false
	form.Set("client_id", p.client)
	_, text, err := read(p.http.PostForm(p.site+"/token", form))
	if err == nil {
		err = json.Unmarshal([]byte(text), &t)
	}
	if err == nil && t.Access == "" && t.Error != "invalid_grant" {
		err = fmt.Errorf("the response does not say to log in: %s", text)
	}
	return t, err
}

// check asks the resource who the person is.
func (p *person) check(t tokens) error {
	req, err := http.NewRequest(http.MethodPost, p.site+"/mcp", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+t.Access)
	_, who, err := read(p.http.Do(req))
	if err == nil && who != p.name+" of "+p.name {
		err = fmt.Errorf("the resource sees %q", who)
	}
	return err
}

// login logs in, renews the login, and checks whose it is. It begins again if the login may have ended.
func (p *person) login() error {
	for {
		t, err := p.try()
		switch {
		case err != nil:
			return err
		case t.Access != "":
			return p.check(t)
		case !p.ended:
			return errors.New("the login ended for no reason")
		}
		p.report.add(&p.report.Begun)
	}
}

// try returns tokens, or none if the login has ended.
func (p *person) try() (t tokens, err error) {
	verifier := oauth2.GenerateVerifier()
	code, err := p.visit(verifier)
	if err != nil || code == "" {
		return t, err
	}
	t, err = p.ask(url.Values{"grant_type": {grantCode}, "code": {code}, "code_verifier": {verifier}})
	if err != nil || t.Access == "" {
		return t, err
	}
	if err := p.check(t); err != nil {
		return t, err
	}
	return p.ask(url.Values{"grant_type": {grantRefresh}, "refresh_token": {t.Refresh}})
}
