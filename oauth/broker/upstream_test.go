package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/broker"
)

func TestWhoMayLogIn(t *testing.T) {
	refused := fmt.Errorf("%w: not on the list", broker.ErrRefused)
	decide := func(scopes []string, err error) func(context.Context, *broker.User, []string) ([]string, error) {
		return func(context.Context, *broker.User, []string) ([]string, error) { return scopes, err }
	}
	for _, test := range []struct {
		name   string
		user   object
		change func(o *broker.Options)
		want   string // scopes, "refused" or "failed"
	}{
		{"a domain", nil, func(o *broker.Options) { o.Domains = []string{"other.example", "EXAMPLE.com"} }, "notes:read notes:write"},
		{"a subdomain", object{"email": "ada@evil.example.com"}, func(o *broker.Options) { o.Domains = []string{"example.com"} }, "refused"},
		{"a domain in the name", object{"email": "ada@example.com@evil.example"}, func(o *broker.Options) { o.Domains = []string{"example.com"} }, "refused"},
		{"an address that is not verified", object{"email_verified": false}, func(o *broker.Options) { o.Domains = []string{"example.com"} }, "refused"},
		{"an address of unknown origin", object{"email_verified": nil}, func(o *broker.Options) { o.Domains = []string{"example.com"} }, "refused"},
		{"a group", nil, func(o *broker.Options) { o.Groups = []string{"admins", "staff"} }, "notes:read notes:write"},
		{"a domain without a group", nil, func(o *broker.Options) { o.Domains, o.Groups = []string{"example.com"}, []string{"x"} }, "refused"},
		{"a group in another claim", object{"roles": []string{"r"}}, func(o *broker.Options) { o.Groups, o.Provider.GroupClaim = []string{"r"}, "roles" }, "notes:read notes:write"},
		{"no scope at all", nil, func(o *broker.Options) { o.Scopes = map[string][]string{"notes:read": {"x"}} }, "refused"},
		{"a server without scopes", nil, func(o *broker.Options) { o.Scopes = nil }, ""},
		{"a function", nil, func(o *broker.Options) { o.Decide = decide([]string{"notes:read", "root"}, nil) }, "notes:read"},
		{"a function that refuses", nil, func(o *broker.Options) { o.Decide = decide(nil, refused) }, "refused"},
		{"a function that fails", nil, func(o *broker.Options) { o.Decide = decide(nil, errors.New("hush")) }, "failed"},
		{"a user without a name", object{"sub": ""}, func(*broker.Options) {}, "refused"},
		{"an ID token for another client", object{"aud": "other"}, func(*broker.Options) {}, "failed"},
		{"an ID token of another issuer", object{"iss": "https://evil.example"}, func(*broker.Options) {}, "failed"},
		{"an ID token that has expired", object{"exp": 1}, func(*broker.Options) {}, "failed"},
		{"another user at the userinfo endpoint", object{"sub": "bob"}, func(o *broker.Options) { o.Provider.UserInfo = true }, "failed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newProvider(t)
			p.claims = test.user
			s := newSite(t, p, test.change)
			user := newBrowser(t, "ada")
			c := s.register(local)
			code := user.visit(c.page()).Get("code")
			switch test.want {
			case "refused":
				require.Contains(t, user.page, "Your account may not use this server.")
				require.Contains(t, user.page, ">Use another account</a>")
			case "failed":
				require.Contains(t, user.page, "The login at the provider failed.")
			default:
				_, doc := c.redeem(code)
				require.Equal(t, test.want, or(doc["scope"]))
			}
			require.NotContains(t, user.page, "hush")
		})
	}
}

// An account of Google may have an address of a company that does not manage it.
func TestDomainsOfGoogleAreThoseItManages(t *testing.T) {
	const google = "https://accounts.google.com"
	u := &broker.User{Email: "ada@example.com", Claims: object{}}
	require.False(t, u.In("example.com", google))
	u.Claims["hd"] = "example.com"
	require.True(t, u.In("example.com", google))
	u.Claims["hd"] = "evil.example"
	require.False(t, u.In("example.com", google))
}

func TestAnotherAccount(t *testing.T) {
	p := newProvider(t)
	s := newSite(t, p, func(o *broker.Options) {
		o.Provider.Params = map[string]string{"prompt": "consent"}
		o.Domains = []string{"other.example"}
	})
	p.users["bob"]["email"] = "bob@other.example"
	c := s.register(local)
	user := newBrowser(t, "ada")
	require.Nil(t, user.visit(c.page()))
	link := regexp.MustCompile(`<a href="([^"]+)"`).FindStringSubmatch(user.page)[1]
	user.http.Jar.SetCookies(&url.URL{Scheme: "http", Host: "127.0.0.1"}, []*http.Cookie{{Name: "user", Value: "bob"}})
	code := user.visit(link).Get("code")
	p.change(func(p *provider) { require.Equal(t, "consent select_account", p.asked.Get("prompt")) })
	status, tokens := c.redeem(code)
	require.Equal(t, http.StatusOK, status)
	_, who := s.call(tokens["access_token"])
	require.Equal(t, "bob: notes:read notes:write", who)
}

// A refresh asks the provider, so that what it says of the user holds within ten minutes.
func TestRefreshesFollowTheProvider(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(p *provider)
		status int
		want   string // scopes, or the error
	}{
		{"nothing has changed", func(*provider) {}, 200, "notes:read notes:write"},
		{"nothing has changed, without an ID token", func(p *provider) { p.refreshes = false }, 200, "notes:read notes:write"},
		{"the account was removed", func(p *provider) { delete(p.users, "ada") }, 400, "invalid_grant"},
		{"the account was removed, without an ID token", func(p *provider) { p.refreshes = false; delete(p.users, "ada") }, 400, "invalid_grant"},
		{"the user left a group", func(p *provider) { p.users["ada"]["groups"] = []string{"staff"} }, 200, "notes:read"},
		{"the user left a group, without an ID token", func(p *provider) { p.refreshes = false; p.users["ada"]["groups"] = []string{"staff"} }, 200, "notes:read"},
		{"the user left the company", func(p *provider) { p.users["ada"]["groups"] = []string{} }, 400, "invalid_grant"},
		{"no groups, without an ID token", func(p *provider) { p.refreshes = false; delete(p.users["ada"], "groups") }, 400, "invalid_grant"},
		{"another user", func(p *provider) { p.claims = object{"sub": "bob"} }, 400, "invalid_grant"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newProvider(t)
			p.users["ada"]["groups"] = []string{"staff", "editors"}
			s := newSite(t, p, func(o *broker.Options) {
				o.Groups, o.Scopes = []string{"staff"}, map[string][]string{"notes:read": nil, "notes:write": {"editors"}}
			})
			c := s.register(local)
			tokens := c.login(newBrowser(t, "ada"))
			writer := c.login(newBrowser(t, "ada"), "scope", "notes:write")["refresh_token"]
			p.change(test.change)
			status, doc := c.refresh(tokens["refresh_token"])
			require.Equal(t, test.status, status, doc)
			require.Equal(t, test.want, or(doc["scope"])+or(doc["error"]))
			writes, _ := c.refresh(writer)
			require.Equal(t, strings.Contains(test.want, "notes:write"), writes == http.StatusOK, "a login without scopes ends")
			s.asking = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				u, err := s.User(r.Context())
				fmt.Fprint(w, u != nil && u.Email == "ada@example.com", " ", errors.Is(err, broker.ErrEnded))
				bob := *oauth.FromContext(r.Context())
				bob.Subject = "bob"
				_, err = s.User(oauth.NewContext(r.Context(), &bob))
				require.ErrorIs(t, err, broker.ErrEnded, "the login of another user")
			})
			_, still := s.call(tokens["access_token"])
			require.Equal(t, map[bool]string{true: "true false", false: "false true"}[test.status == 200], still)
		})
	}
}

func TestLoginsOutliveAFailureOfTheProvider(t *testing.T) {
	p, deciding := newProvider(t), error(nil)
	s := newSite(t, p, func(o *broker.Options) {
		o.Decide = func(_ context.Context, _ *broker.User, scopes []string) ([]string, error) { return scopes, deciding }
	})
	c := s.register(local)
	old := c.login(newBrowser(t, "ada"))["refresh_token"]
	for _, fail := range []func(bool){func(fails bool) {
		if p.down.Add(1); !fails {
			require.Equal(t, int32(3), p.down.Swap(0), "one request was sent")
		}
	}, func(fails bool) {
		if deciding = nil; fails { // when the provider has replaced its refresh token
			deciding = errors.New("no route to the directory")
		}
	}} {
		fail(true)
		status, doc := c.refresh(old)
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Equal(t, object{"error": "temporarily_unavailable"}, doc)
		fail(false)
		status, doc = c.refresh(old)
		require.Equal(t, http.StatusOK, status)
		old = doc["refresh_token"]
	}
	require.NotContains(t, s.log.String(), "refresh_token=", "the provider repeats the request")
}

type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestADeadProviderHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{t: t, url: "https://notes.example.com"}
		s.Broker = newBroker(t, nil, s.url, func(o *broker.Options) {
			o.Provider, o.Client, o.Logger = broker.Google("id", "secret"), &http.Client{Transport: hanging{}}, discard
		})
		s.handler = s.Broker
		page := s.register(local).page()
		parallel(3, func(i int) {
			time.Sleep(time.Duration(i) * time.Second)
			patience := []time.Duration{time.Hour, time.Hour, time.Second}[i]
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			w := httptest.NewRecorder()
			begun := time.Now()
			s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", page, nil))
			require.Equal(t, http.StatusBadGateway, w.Code)
			require.Equal(t, min(patience, time.Duration(10-i)*time.Second), time.Since(begun))
		})
	})
}

// The tokens of the provider are fresh, belong to the user, and reach nobody but the method. The
// provider ends the login of a refresh token that is used twice.
func TestUpstream(t *testing.T) {
	engine := fleet.NewMemory(fleet.MemoryOptions{})
	for lifetime, fresh := range map[time.Duration]int{time.Hour: 1, time.Second: 8} {
		p := newProvider(t, lifetime)
		s := newSite(t, p, func(o *broker.Options) { o.Engine = engine.Open() })
		tokens := s.register(local).login(newBrowser(t, "ada"))
		got := make(chan string, 8)
		s.asking = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			token, err := s.Upstream(r.Context()).Token()
			if err == nil && token.RefreshToken == "" {
				got <- token.AccessToken
			}
		})
		parallel(cap(got), func(int) { s.call(tokens["access_token"]) })
		require.Len(t, got, cap(got))
		seen := map[string]bool{}
		for range cap(got) {
			seen[<-got] = true
		}
		require.Len(t, seen, fresh)
		for token := range seen {
			p.change(func(p *provider) { require.Equal(t, "ada", p.tokens[token]) })
			require.NotContains(t, fmt.Sprint(tokens, s.log), token)
		}
		require.NotContains(t, s.log.String(), "upstream-secret")
		_, err := s.Upstream(t.Context()).Token()
		require.EqualError(t, err, "broker: the request has no access token of this broker")
	}
	records, err := engine.List(t.Context(), "broker-grants", fleet.Digest("ada"), "", 10)
	require.NoError(t, err)
	require.Len(t, records, 2)
	require.NotContains(t, string(records[0].Data), "access_token", "an engine that somebody reads tells nothing")
	require.NoError(t, engine.Close())
}

// gitHub is a stub of GitHub's OAuth and API.
type gitHub struct {
	*httptest.Server
	mu      sync.Mutex
	answers map[string]any // of the API, by path; the token is invalid without any; guarded by mu
	scope   string         // the requested scopes; guarded by mu
}

func newGitHub(t *testing.T) *gitHub {
	g := &gitHub{answers: map[string]any{
		"/user": object{"id": 17, "login": "ada", "name": "Ada"},
		"/user/emails": []object{
			{"email": "ada@evil.example", "primary": true, "verified": false}, {"email": "ada@old.example", "primary": false, "verified": true},
			{"email": "ada@example.com", "primary": true, "verified": true},
		},
		"/user/orgs":  []object{{"login": "acme"}},
		"/user/teams": []object{{"slug": "platform", "organization": object{"login": "acme"}}},
	}}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		q := r.URL.Query()
		switch path := strings.TrimPrefix(r.URL.Path, "/api/v3"); {
		case path == "/login/oauth/authorize":
			g.scope = q.Get("scope")
			http.Redirect(w, r, q.Get("redirect_uri")+"?code=c1&state="+q.Get("state"), http.StatusFound)
		case path == "/login/oauth/access_token":
			fmt.Fprint(w, `{"access_token":"gho_1","token_type":"bearer","scope":"read:user"}`)
		case len(g.answers) == 0 || r.Header.Get("Authorization") != "Bearer gho_1":
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"message":"Bad credentials"}`)
		default:
			_ = json.NewEncoder(w).Encode(g.answers[path])
		}
	}))
	t.Cleanup(g.Close)
	return g
}

func TestGitHub(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(o *broker.Options)
		api    object
		asks   string
		in     bool
	}{
		{"anyone", func(o *broker.Options) { o.Decide = broker.Anyone }, nil, "read:user user:email read:org", true},
		{"a domain", func(o *broker.Options) { o.Decide, o.Domains = nil, []string{"example.com"} }, nil, "read:user user:email", true},
		{"a domain of an address that is not verified", func(o *broker.Options) { o.Decide, o.Domains = nil, []string{"evil.example"} }, nil, "read:user user:email", false},
		{"an organization", func(o *broker.Options) { o.Groups = []string{"acme"} }, nil, "read:user user:email read:org", true},
		{"a team", func(o *broker.Options) { o.Groups = []string{"acme/platform"} }, nil, "read:user user:email read:org", true},
		{"a team of another organization", func(o *broker.Options) { o.Groups = []string{"evil/platform"} }, nil, "read:user user:email read:org", false},
		{"nobody", func(*broker.Options) {}, object{"/user": object{}}, "read:user user:email read:org", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := newGitHub(t)
			maps.Copy(g.answers, test.api)
			s := newSite(t, nil, func(o *broker.Options) {
				o.Provider = broker.GitHub("id", "secret")
				o.Provider.Issuer = g.URL
				test.change(o)
			})
			c := s.register(local)
			code := newBrowser(t, "").visit(c.page()).Get("code")
			require.Equal(t, test.in, code != "")
			require.Equal(t, test.asks, g.scope)
			if !test.in {
				return
			}
			_, tokens := c.redeem(code)
			_, who := s.call(tokens["access_token"])
			require.Equal(t, "17: notes:read notes:write", who)
			status, tokens := c.refresh(tokens["refresh_token"])
			require.Equal(t, http.StatusOK, status)
			g.mu.Lock()
			clear(g.answers)
			g.mu.Unlock()
			c.ended(tokens["refresh_token"], "the user has revoked the app")
		})
	}
}

// A document vouches for its host, and is fetched without harm.
func TestMetadataDocumentsOfClients(t *testing.T) {
	var fetched atomic.Int32
	changes := map[string]object{
		"/good": {}, "/other": {"client_id": "https://editor.example/good"}, "/secret": {"token_endpoint_auth_method": "client_secret_post"},
		"/signed": {"token_endpoint_auth_method": "private_key_jwt"}, "/scheme": {"redirect_uris": []string{local, "javascript:alert(1)"}},
		"/large": {"x": strings.Repeat("x", 2<<20)},
	}
	docs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fetched.Add(1)
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/good", http.StatusFound)
			return
		}
		if changes[r.URL.Path] == nil {
			w.WriteHeader(http.StatusNotFound)
		}
		doc := object{
			"client_id": "http://" + r.Host + r.URL.Path, "client_name": "Editor", "redirect_uris": []string{local},
			"grant_types": []string{"authorization_code", "refresh_token"},
		}
		maps.Copy(doc, changes[r.URL.Path])
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(doc)
	}))
	defer docs.Close()
	p := newProvider(t)
	s := newSite(t, p, nil)
	for path, good := range map[string]bool{
		"/good": true, "/other": false, "/moved": false, "/missing": false, "/secret": false, "/signed": false, "/scheme": false,
		"/large": false, "/": false, "": false, "/a/../good": false, "/%2e%2e/good": false, "/good#x": false,
	} {
		t.Run(path, func(t *testing.T) {
			user := newBrowser(t, "ada")
			user.decide = ""
			c := program{s: s, id: docs.URL + path, redirect: local, verifier: "x"}
			before := fetched.Load()
			for range 2 {
				require.Nil(t, user.visit(c.page()))
				require.Equal(t, good, strings.Contains(user.page, "The program is described by "+strings.TrimPrefix(docs.URL, "http://")+"."), user.page)
				require.Equal(t, !good, strings.Contains(user.page, stranger))
			}
			require.LessOrEqual(t, fetched.Load()-before, int32(1), "documents and failures are cached")
		})
	}
	c := program{s: s, id: docs.URL + "/good", redirect: local, verifier: strings.Repeat("v", 43)}
	tokens := c.login(newBrowser(t, "ada"))
	require.NotEmpty(t, tokens["refresh_token"])

	// Server-side request forgery: a broker on the internet reaches nothing inside.
	inside := newOnline(t)
	before := fetched.Load()
	for _, id := range []string{
		docs.URL + "/good", strings.Replace(docs.URL, "http:", "https:", 1) + "/good", "https://localhost:1/good", "https://169.254.169.254/latest",
		"https://10.0.0.1/x", "https://[::1]/x", "https://[::ffff:127.0.0.1]/x", "https://0x7f.1/x", "https://u:p@example.com/x", "file:///etc/passwd",
	} {
		inside.id = id
		require.Equal(t, http.StatusBadRequest, serve(inside.s, "GET", inside.page(), "").Code, id)
	}
	require.Equal(t, before, fetched.Load())
}

// Each leg of a login reaches another replica, and none confuses users.
func TestReplicas(t *testing.T) {
	p := newProvider(t)
	const logins = 1000
	for i := range logins {
		p.users[fmt.Sprint("user", i)] = object{"groups": []string{"staff"}}
	}
	engine := fleet.NewMemory(fleet.MemoryOptions{})
	var next atomic.Int64
	var replicas []http.Handler
	s := newSite(t, p, nil)
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		replicas[int(next.Add(1))%len(replicas)].ServeHTTP(w, r)
	})
	for range 3 {
		b := newBroker(t, p, s.url, func(o *broker.Options) { o.Engine, o.Logger = engine.Open(), discard })
		replicas = append(replicas, b.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if token, err := b.Upstream(r.Context()).Token(); err == nil {
				user := oauth.FromContext(r.Context()).Subject
				p.change(func(p *provider) { fmt.Fprint(w, user, " ", p.tokens[token.AccessToken]) })
			}
		})))
	}
	c := s.register(local)
	var failed atomic.Int64
	parallel(8, func(worker int) {
		for i := worker; i < logins; i += 8 {
			name := fmt.Sprint("user", i)
			_, tokens := c.redeem(newBrowser(t, name).visit(c.page()).Get("code"))
			if i%10 == 0 {
				_, tokens = c.refresh(tokens["refresh_token"])
			}
			if _, who := s.call(tokens["access_token"]); who != name+" "+name {
				failed.Add(1)
			}
		}
	})
	require.Zero(t, failed.Load())
	require.NoError(t, engine.Close())
}

// A replica that dies during a refresh leaves its lock behind. The next refresh succeeds when it expires.
func TestARefreshOutlivesItsReplica(t *testing.T) {
	p := newProvider(t)
	synctest.Test(t, func(t *testing.T) {
		engine := fleet.NewMemory(fleet.MemoryOptions{})
		s := &site{t: t, url: "http://127.0.0.1:2"}
		network := roundTripper(func(r *http.Request) (*http.Response, error) {
			w, to := httptest.NewRecorder(), http.Handler(p)
			if "http://"+r.URL.Host == s.url {
				to = s.handler
			}
			to.ServeHTTP(w, r)
			return w.Result(), nil
		})
		s.Broker = newBroker(t, p, s.url, func(o *broker.Options) {
			o.Engine, o.Logger, o.Client = engine.Open(), discard, &http.Client{Transport: network}
		})
		s.handler = s.Protect(nothing)
		c, ada := s.register(remote), newBrowser(t, "ada")
		ada.http.Transport = network
		token := c.login(ada)["refresh_token"]
		logins, err := engine.List(t.Context(), "broker-grants", fleet.Digest("ada"), "", 1)
		require.NoError(t, err)
		const lock = 20 * time.Second
		_, err = engine.Create(t.Context(), "broker-locks", fleet.Record{Key: logins[0].Key, TTL: lock})
		require.NoError(t, err)
		begun := time.Now()
		status, doc := c.refresh(token)
		require.Equal(t, http.StatusOK, status, doc)
		require.Equal(t, lock, time.Since(begun).Truncate(time.Second))
		require.NoError(t, engine.Close())
	})
}

type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A user who logs in without end takes the place of the own logins.
func TestLoginsOfAUserAreBounded(t *testing.T) {
	engine := fleet.NewMemory(fleet.MemoryOptions{})
	s := newSite(t, newProvider(t), func(o *broker.Options) { o.Engine, o.Logger = engine.Open(), discard })
	c := s.register(local)
	kept := c.login(newBrowser(t, "bob"))
	ada := newBrowser(t, "ada")
	for range 110 {
		c.login(ada)
	}
	n, err := engine.Count(t.Context(), "broker-grants", fleet.Digest("ada"))
	require.NoError(t, err)
	require.Equal(t, 100, n)
	status, _ := c.refresh(kept["refresh_token"])
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, engine.Close())
}

func TestFaultsInOptions(t *testing.T) {
	engine := fleet.NewMemory(fleet.MemoryOptions{})
	_, err := broker.New(broker.Options{
		Issuer: "http://notes.example.com", Resource: "notes", Engine: engine,
		Provider:     broker.Provider{Issuer: "ftp://x", ClientID: "id", ClientSecret: "s"},
		Translations: map[string]map[string]string{"de": {"Yes": "Ja"}},
	})
	require.EqualError(t, err, `broker: Options.Issuer: "http://notes.example.com" is not encrypted; use https
broker: nobody may log in; give Domains, Groups or Decide, or set Decide to Anyone to admit every account of the provider
broker: replicas need the same Keys; give one of 32 random bytes
broker: Provider.Issuer: "ftp://x" is not an absolute https URL
broker: Options.Translations: de: no page has the text "Yes"`)
	_, err = broker.New(broker.Options{
		Issuer: "https://notes.example.com?x", Keys: [][]byte{[]byte("short")}, Domains: []string{"example.com"}, Provider: broker.Google("", ""),
	})
	require.EqualError(t, err, `broker: Options.Issuer has a query or a fragment; it must have none
broker: Provider needs a ClientID and a ClientSecret
broker: key 1 of Keys has 5 bytes; at least 32 random bytes are needed`)
}
