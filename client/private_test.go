package client_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

func TestPrivateResultsAreForgottenWithTheLogin(t *testing.T) {
	user := "ada"
	as := oauthtest.New(t, &oauthtest.Options{Consent: func(a *oauthtest.Authorization) error { a.Subject = user; return nil }})
	srv := mcpkit.MustNew(nil)
	reads := 0
	require.NoError(t, srv.Add(mcpkit.NewResource("me://name", "name", func(call *mcpkit.Call) string {
		reads++
		return call.Principal().Subject
	}).Cache("1h,private")))
	require.NoError(t, srv.Add(mcpkit.NewResource("me://everybody", "everybody", func(call *mcpkit.Call) string {
		return call.Principal().Subject
	}).Cache("1h,public")))

	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	guard, err := resource.New(resource.Options{Issuer: as.Issuer, Resource: s.URL + "/mcp", InsecureLoopback: true, Client: as.Client()})
	require.NoError(t, err)
	guard.Mount(mux)
	mux.Handle("/mcp", guard.Wrap(streamable.NewHandler(srv, &streamable.Options{Logger: slog.New(slog.DiscardHandler)})))

	login, err := oauthclient.New(s.URL+"/mcp", &oauthclient.AuthorizationCode{
		Name: "test", Browser: oauthclient.Loopback(&oauthclient.LoopbackOptions{Open: oauthtest.Open}),
	}, &oauthclient.Options{InsecureLoopback: true, Base: as.Client().Transport})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, login.Close()) })
	c := dial(t, s.URL+"/mcp", client.HTTPClient(&http.Client{Transport: login}))
	read := func(uri string) string {
		r, err := c.ReadResource(t.Context(), uri)
		require.NoError(t, err)
		return *r.Contents[0].Text
	}

	require.Equal(t, "ada", read("me://name"))
	require.Equal(t, "ada", read("me://name"))
	require.Equal(t, 1, reads, "private results are cached for their user")
	require.Equal(t, "ada", read("me://everybody"))

	require.NoError(t, login.Logout(t.Context()))
	user = "bob"
	require.NoError(t, login.Login(t.Context()))
	require.Equal(t, "bob", read("me://name"))
	require.Equal(t, "ada", read("me://everybody"), "public results are for everybody")
}

// signing is a transport that sends credentials which the client does not know.
type signing struct{ http.RoundTripper }

func TestPrivateResultsAreNotCachedForUnknownCredentials(t *testing.T) {
	srv := mcpkit.MustNew(nil)
	reads := 0
	count := func() string { reads++; return "" }
	require.NoError(t, srv.Add(mcpkit.NewResource("x://private", "private", count).Cache("1h,private")))
	require.NoError(t, srv.Add(mcpkit.NewResource("x://public", "public", count).Cache("1h,public")))
	url := serveHTTP(t, srv)
	own := &http.Transport{}
	t.Cleanup(own.CloseIdleConnections)
	for _, test := range []struct {
		uri    string
		client *http.Client
		reads  int
	}{
		{"x://private", &http.Client{Transport: signing{own}}, 2},
		{"x://public", &http.Client{Transport: signing{own}}, 1},
		{"x://private", &http.Client{Transport: own}, 1},
	} {
		c, before := dial(t, url, client.HTTPClient(test.client)), reads
		for range 2 {
			_, err := c.ReadResource(t.Context(), test.uri)
			require.NoError(t, err)
		}
		require.Equal(t, test.reads, reads-before, "%s %T", test.uri, test.client.Transport)
	}
}
