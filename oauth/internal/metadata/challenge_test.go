package metadata_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

type challenge = metadata.Challenge

func params(pairs ...string) []metadata.Param {
	var list []metadata.Param
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, metadata.Param{Name: pairs[i], Value: pairs[i+1]})
	}
	return list
}

func TestParseChallenges(t *testing.T) {
	for _, test := range []struct {
		name   string
		values []string
		want   []challenge
		err    string // the error text, or empty
	}{
		{name: "none"},
		{name: "empty elements", values: []string{"", " , ,"}},
		{name: "a scheme alone", values: []string{"Bearer"}, want: []challenge{{Scheme: "Bearer"}}},
		{name: "quoted", values: []string{`Bearer resource_metadata="https://a.example/x", scope="a b"`},
			want: []challenge{{Scheme: "Bearer", Params: params("resource_metadata", "https://a.example/x", "scope", "a b")}}},
		{name: "unquoted and spaced", values: []string{`bearer error = invalid_token ,scope= "a"`},
			want: []challenge{{Scheme: "bearer", Params: params("error", "invalid_token", "scope", "a")}}},
		{name: "escapes", values: []string{`Bearer realm="a\"b\\c, Basic x=1"`},
			want: []challenge{{Scheme: "Bearer", Params: params("realm", `a"b\c, Basic x=1`)}}},
		{name: "several in one field", values: []string{`Basic realm="x", Bearer error="e", DPoP algs="ES256"`},
			want: []challenge{{Scheme: "Basic", Params: params("realm", "x")}, {Scheme: "Bearer", Params: params("error", "e")}, {Scheme: "DPoP", Params: params("algs", "ES256")}}},
		{name: "several fields", values: []string{"Bearer", `DPoP error="use_dpop_nonce"`},
			want: []challenge{{Scheme: "Bearer"}, {Scheme: "DPoP", Params: params("error", "use_dpop_nonce")}}},
		{name: "token68", values: []string{"Negotiate YWJj==, Bearer"},
			want: []challenge{{Scheme: "Negotiate"}, {Scheme: "Bearer"}}},
		{name: "a parameter twice", values: []string{`Bearer scope="a", Scope="b"`},
			want: []challenge{{Scheme: "Bearer", Params: params("scope", "a")}}, err: `WWW-Authenticate: the parameter "Scope" is repeated, or one too many`},
		{name: "no end of the string", values: []string{`Bearer scope="a`},
			err: `WWW-Authenticate: "Bearer scope=\"a" is not a challenge, or one too many`},
		{name: "no value", values: []string{`Bearer a=1, scope=`},
			want: []challenge{{Scheme: "Bearer", Params: params("a", "1")}}, err: `WWW-Authenticate: "scope=" is not a challenge, or one too many`},
		{name: "a parameter first", values: []string{`scope="a"`}, err: `WWW-Authenticate: "scope=\"a\"" is not a challenge, or one too many`},
		{name: "no comma", values: []string{`Bearer a="1" b="2"`},
			err: `WWW-Authenticate: "Bearer a=\"1\" b=\"2\"" is not a challenge, or one too many`},
		{name: "noise", values: []string{`"`}, err: `WWW-Authenticate: "\"" is not a challenge, or one too many`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := metadata.ParseChallenges(test.values)
			require.Equal(t, test.want, got)
			if test.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, test.err)
			}
		})
	}
}

func TestChallengesCannotBeEscapedFrom(t *testing.T) {
	c := challenge{Scheme: "Bearer"}
	c.Set("scope", "a\", x=\"b\\").Set("empty", "").Set("error_description", "line\r\nSet-Cookie: é")
	require.Equal(t, `Bearer scope="a\", x=\"b\\", error_description="line??Set-Cookie: ?"`, c.String())

	back, err := metadata.ParseChallenges([]string{c.String()})
	require.NoError(t, err)
	require.Len(t, back, 1)
	require.Equal(t, `a", x="b\`, back[0].Param("Scope"))
	require.True(t, back[0].Is("BEARER"))
	require.Equal(t, []string{`a",`, `x="b\`}, back[0].Scopes())
}

func FuzzParseChallenges(f *testing.F) {
	for _, seed := range []string{`Bearer a="b"`, `Negotiate abc==, Bearer error=x`, `a b c`, `=,"\`, "Bearer\ta=\"\\\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		list, err := metadata.ParseChallenges([]string{value})
		if err != nil {
			return
		}
		for _, c := range list {
			for _, p := range c.Params {
				for _, r := range p.Value {
					if r < ' ' || r > '~' {
						return // String replaces it with "?"
					}
				}
			}
			again, err := metadata.ParseChallenges([]string{c.String()})
			require.NoError(t, err, c.String())
			require.Equal(t, []challenge{c}, again)
		}
	})
}

func TestWellKnownURLs(t *testing.T) {
	for _, test := range []struct {
		id       string
		resource []string
		issuer   []string
	}{
		{"https://a.example", []string{"https://a.example/.well-known/oauth-protected-resource"},
			[]string{"https://a.example/.well-known/oauth-authorization-server", "https://a.example/.well-known/openid-configuration"}},
		{"https://a.example:8443/t/mcp/", []string{"https://a.example:8443/.well-known/oauth-protected-resource/t/mcp", "https://a.example:8443/.well-known/oauth-protected-resource"},
			[]string{"https://a.example:8443/.well-known/oauth-authorization-server/t/mcp", "https://a.example:8443/.well-known/openid-configuration/t/mcp", "https://a.example:8443/t/mcp/.well-known/openid-configuration"}},
		{"https://a.example/mcp?x=1", []string{"https://a.example/.well-known/oauth-protected-resource/mcp?x=1", "https://a.example/.well-known/oauth-protected-resource?x=1"},
			[]string{"https://a.example/.well-known/oauth-authorization-server/mcp?x=1", "https://a.example/.well-known/openid-configuration/mcp?x=1", "https://a.example/mcp/.well-known/openid-configuration?x=1"}},
	} {
		got, err := metadata.ProtectedResourceURLs(test.id)
		require.NoError(t, err)
		require.Equal(t, test.resource, got)
		got, err = metadata.AuthorizationServerURLs(test.id)
		require.NoError(t, err)
		require.Equal(t, test.issuer, got)
	}
	for id, want := range map[string]string{
		"/mcp":                        `resource "/mcp" is not an absolute https URL`,
		"ftp://a.example":             `resource "ftp://a.example" is not an absolute https URL`,
		"https://a.example/#":         `resource "https://a.example/#" has a fragment; it must have none`,
		"https://u:secret@a.example":  `resource "https://u:xxxxx@a.example" has a user name; it must have none`,
		"https://a b":                 `resource "https://a b" is not a URL`,
		"https://u:hush@a b":          `resource "a b" is not a URL`,
		"https://u:h@sh:x/@a.example": `resource "a.example" is not a URL`,
	} {
		_, err := metadata.ProtectedResourceURLs(id)
		require.EqualError(t, err, want)
	}
}

// FuzzWellKnownURLs checks that all URLs stay at the origin of the identifier.
func FuzzWellKnownURLs(f *testing.F) {
	for _, seed := range []string{"https://a.example", "https://a.example:8443/t/mcp/", "https://a.example/mcp?x=1", "https://a.example/%2e%2e/x", "https://a.example//x", "http://[::1]:1/é", "https://a/..", "https://a/?#"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		places, err := metadata.ProtectedResourceURLs(id)
		issuers, err2 := metadata.AuthorizationServerURLs(id)
		require.Equal(t, err == nil, err2 == nil)
		if err != nil {
			return
		}
		u, err := url.Parse(id)
		require.NoError(t, err)
		for _, place := range append(places, issuers...) {
			p, err := url.Parse(place)
			require.NoError(t, err)
			require.Equal(t, u.Scheme, p.Scheme)
			require.Equal(t, u.Host, p.Host)
			require.Nil(t, p.User)
			require.Empty(t, p.Fragment)
			require.Contains(t, p.Path, "/.well-known/")
		}
	})
}
