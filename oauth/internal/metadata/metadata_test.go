package metadata_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

func TestAllowedURLs(t *testing.T) {
	private := metadata.Policy{PrivateNetworks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}
	loopback := metadata.Policy{InsecureLoopback: true}
	for _, test := range []struct {
		policy metadata.Policy
		url    string
		err    string // the error text, or empty
	}{
		{url: "https://login.example.com/x?y"},
		{url: "https://8.8.8.8/"},
		{url: "https://[2606:4700::1111]:8443/"},
		{url: "http://login.example.com/", err: `"http://login.example.com/" is not encrypted; use https`},
		{url: "http://127.0.0.1/", err: `"http://127.0.0.1/" is not encrypted; use https, or set InsecureLoopback for development`},
		{url: "ftp://login.example.com/", err: `"ftp://login.example.com/" is not an absolute https URL`},
		{url: "file:///etc/passwd", err: `"file:///etc/passwd" is not an absolute https URL`},
		{url: "javascript:alert(1)", err: `"javascript:alert(1)" is not an absolute https URL`},
		{url: "//login.example.com/", err: `"//login.example.com/" is not an absolute https URL`},
		{url: "/x", err: `"/x" is not an absolute https URL`},
		{url: "", err: `"" is not an absolute https URL`},
		{url: "https://", err: `"https://" is not an absolute https URL`},
		{url: "https://:443/", err: `"https://:443/" is not an absolute https URL`},
		{url: "https://user:hush@login.example.com/?key=hush", err: `"https://login.example.com/" has a user name; it must have none`},
		{url: "https://user:hu/sh@login example?key=hush", err: `"login example" is not a URL`},
		{url: "http://login.example.com/?key=hush#hush", err: `"http://login.example.com/" is not encrypted; use https`},

		{url: "https://127.0.0.1/", err: "the address 127.0.0.1 is not public"},
		{url: "https://[::1]/", err: "the address ::1 is not public"},
		{url: "https://[::ffff:127.0.0.1]/", err: "the address 127.0.0.1 is not public"},
		{url: "https://[::ffff:a9fe:a9fe]/", err: "the address 169.254.169.254 is not public"},
		{url: "https://[::127.0.0.1]/", err: "the address ::7f00:1 is not public"},
		{url: "https://[64:ff9b::127.0.0.1]/", err: "the address 64:ff9b::7f00:1 is not public"},
		{url: "https://[64:ff9b::8.8.8.8]/", err: "the address 64:ff9b::808:808 is not public"},
		{url: "https://[64:ff9b:1::a00:1]/", err: "the address 64:ff9b:1::a00:1 is not public"},
		{url: "https://[2002:7f00:1::]/", err: "the address 2002:7f00:1:: is not public"},
		{url: "https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/", err: "the address 2001:0:4136:e378:8000:63bf:3fff:fdd2 is not public"},
		{url: "https://[3fff::1]/", err: "the address 3fff::1 is not public"},
		{url: "https://[3fff:fff:ffff::1]/", err: "the address 3fff:fff:ffff::1 is not public"},
		{url: "https://[3ffe::1]/"},
		{url: "https://[5f00::1]/", err: "the address 5f00::1 is not public"},
		{url: "https://[fe80::1%25eth0]/", err: "the address fe80::1 is not public"},
		{url: "https://[fec0::1]/", err: "the address fec0::1 is not public"},
		{url: "https://[fd00::1]/", err: "the address fd00::1 is not public"},
		{url: "https://[ff02::1]/", err: "the address ff02::1 is not public"},
		{url: "https://[::]/", err: "the address :: is not public"},
		{url: "https://0.0.0.0/", err: "the address 0.0.0.0 is not public"},
		{url: "https://0.1.2.3/", err: "the address 0.1.2.3 is not public"},
		{url: "https://10.0.0.1/", err: "the address 10.0.0.1 is not public"},
		{url: "https://172.31.255.255/", err: "the address 172.31.255.255 is not public"},
		{url: "https://192.168.1.1/", err: "the address 192.168.1.1 is not public"},
		{url: "https://100.64.0.1/", err: "the address 100.64.0.1 is not public"},
		{url: "https://169.254.169.254/latest/meta-data", err: "the address 169.254.169.254 is not public"},
		{url: "https://192.0.0.192/", err: "the address 192.0.0.192 is not public"},
		{url: "https://198.19.0.1/", err: "the address 198.19.0.1 is not public"},
		{url: "https://224.0.0.1/", err: "the address 224.0.0.1 is not public"},
		{url: "https://255.255.255.255/", err: "the address 255.255.255.255 is not public"},

		{policy: private, url: "https://10.1.2.3/"},
		{policy: private, url: "https://[fd12::1]/"},
		{policy: private, url: "https://[::ffff:10.1.2.3]/"},
		{policy: private, url: "http://10.1.2.3/", err: `"http://10.1.2.3/" is not encrypted; use https`},
		{policy: private, url: "https://192.168.1.1/", err: "the address 192.168.1.1 is not public"},
		{policy: private, url: "https://127.0.0.1/", err: "the address 127.0.0.1 is not public"},

		{policy: loopback, url: "http://127.0.0.1:8080/"},
		{policy: loopback, url: "http://localhost:8080/"},
		{policy: loopback, url: "http://[::1]:8080/"},
		{policy: loopback, url: "https://127.9.9.9/"},
		{policy: loopback, url: "http://login.example.com/", err: `"http://login.example.com/" is not encrypted; use https`},
		{policy: loopback, url: "http://localhost.evil.example/", err: `"http://localhost.evil.example/" is not encrypted; use https`},
		{policy: loopback, url: "http://127.0.0.1.evil.example/", err: `"http://127.0.0.1.evil.example/" is not encrypted; use https`},
		{policy: loopback, url: "https://10.0.0.1/", err: "the address 10.0.0.1 is not public"},
		{policy: loopback, url: "http://0.0.0.0/", err: `"http://0.0.0.0/" is not encrypted; use https`},
	} {
		t.Run(test.url, func(t *testing.T) {
			u, err := test.policy.CheckURL(test.url)
			if test.err != "" {
				require.EqualError(t, err, test.err)
				require.NotContains(t, err.Error(), "hush")
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.url, u.String())
		})
	}
}

// names is a resolver in memory. It holds the answers to the first, second and later questions for
// a name, and repeats the last answer.
type names struct {
	mu      sync.Mutex
	answers map[string][]netip.Addr
	asked   int
}

// resolver returns a resolver that speaks DNS over a pipe.
func (n *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		// Ends when the client closes its side.
		go n.serve(server)
		return client, nil
	}}
}

func (n *names) serve(conn net.Conn) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		reply := n.answer(query)
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

// answer answers one DNS question (RFC 1035) with A records.
func (n *names) answer(query []byte) []byte {
	var labels []string
	end := 12
	for query[end] != 0 {
		labels = append(labels, string(query[end+1:end+1+int(query[end])]))
		end += 1 + int(query[end])
	}
	question := query[12 : end+5]
	kind := binary.BigEndian.Uint16(query[end+1:])
	n.mu.Lock()
	defer n.mu.Unlock()
	name := strings.ToLower(strings.Join(labels, "."))
	var found []netip.Addr
	if list := n.answers[name]; kind == 1 && len(list) > 0 {
		n.asked++
		if found = list[:1]; len(list) > 1 {
			n.answers[name] = list[1:]
		}
	}
	reply := append([]byte{query[0], query[1], 0x84, 0, 0, 1, 0, byte(len(found)), 0, 0, 0, 0}, question...)
	for _, addr := range found {
		reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		reply = append(reply, addr.AsSlice()...)
	}
	return reply
}

// server starts a loopback server with a certificate for example.com. It counts requests.
func server(t *testing.T, handler http.HandlerFunc) (*httptest.Server, *tls.Config, *atomic.Int32) {
	t.Helper()
	var came atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came.Add(1)
		handler(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return s, &tls.Config{RootCAs: pool}, &came
}

const isJSON = "Content-Type: application/json"

// answer answers with the body and the headers; without a type in them, with none.
func answer(body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		for _, header := range headers {
			name, value, _ := strings.Cut(header, ": ")
			w.Header().Set(name, value)
		}
		_, _ = io.WriteString(w, body)
	}
}

var object = answer(`{"a":1}`, isJSON)

func get(t *testing.T, p metadata.Policy, rawURL string) (map[string]any, error) {
	t.Helper()
	client := p.Client()
	defer client.CloseIdleConnections()
	var v map[string]any
	err := p.Get(t.Context(), client, rawURL, &v)
	return v, err
}

func TestAddressesAreCheckedWhenTheyAreDialed(t *testing.T) {
	s, trusted, came := server(t, object)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	require.NoError(t, err)
	dns := &names{answers: map[string][]netip.Addr{}}
	strict := metadata.Policy{TLS: trusted, Resolver: dns.resolver()}
	for _, address := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.0.1", "100.64.0.1", "0.0.0.0"} {
		dns.answers["example.com"] = []netip.Addr{netip.MustParseAddr(address)}
		_, err := get(t, strict, "https://example.com:"+port+"/x?key=hush")
		require.EqualError(t, err, fmt.Sprintf("https://example.com:%s/x: dial tcp %s:%s: the address %s is not public", port, address, port, address))
	}
	require.Zero(t, came.Load(), "no request was sent")

	t.Run("the same name in a network that is allowed", func(t *testing.T) {
		dns.answers["example.com"] = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
		allowed := strict
		allowed.PrivateNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		v, err := get(t, allowed, "https://example.com:"+port+"/x")
		require.NoError(t, err)
		require.Equal(t, map[string]any{"a": 1.0}, v)
	})
}

// TestNameThatResolvesToAPrivateAddressIsRejected answers the first DNS question with a public
// address and later ones with a loopback address, as an attacker would (DNS rebinding).
func TestNameThatResolvesToAPrivateAddressIsRejected(t *testing.T) {
	s, trusted, came := server(t, object)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	require.NoError(t, err)
	dns := &names{answers: map[string][]netip.Addr{"example.com": {netip.MustParseAddr("93.184.215.14"), netip.MustParseAddr("127.0.0.1")}}}
	p := metadata.Policy{TLS: trusted, Resolver: dns.resolver()}
	first, err := p.Resolver.LookupNetIP(t.Context(), "ip4", "example.com")
	require.NoError(t, err)
	require.Equal(t, []netip.Addr{netip.MustParseAddr("93.184.215.14")}, first, "the first lookup finds a public address")
	_, err = p.CheckURL("https://example.com:" + port)
	require.NoError(t, err)
	_, err = get(t, p, "https://example.com:"+port)
	require.EqualError(t, err, "https://example.com:"+port+": dial tcp 127.0.0.1:"+port+": the address 127.0.0.1 is not public")
	require.Zero(t, came.Load())
	dns.mu.Lock()
	defer dns.mu.Unlock()
	require.Equal(t, 2, dns.asked)
}

func TestLoopbackNeedsInsecureLoopback(t *testing.T) {
	s := httptest.NewServer(object)
	t.Cleanup(s.Close)
	_, err := get(t, metadata.Policy{InsecureLoopback: true}, s.URL)
	require.NoError(t, err)
	_, err = get(t, metadata.Policy{}, s.URL)
	require.EqualError(t, err, fmt.Sprintf("%q is not encrypted; use https, or set InsecureLoopback for development", s.URL))
}

func TestEachRedirectIsHeldToTheRules(t *testing.T) {
	inner, _, innerCame := server(t, object)
	var s *httptest.Server
	var trusted *tls.Config
	var came *atomic.Int32
	s, trusted, came = server(t, func(w http.ResponseWriter, r *http.Request) {
		switch to := r.URL.Query().Get("to"); {
		case r.URL.Path == "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case to != "":
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		default:
			object(w, r)
		}
	})
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	require.NoError(t, err)
	p := metadata.Policy{TLS: trusted, InsecureLoopback: true}
	for _, test := range []struct{ name, path, err string }{
		{"a path", "/?to=/there", ""},
		{"two hops", "/?to=" + url.QueryEscape("/?to=/there"), ""},
		{"without end", "/loop", "/loop: redirected more than 3 times"},
		{"another port", "/?to=" + inner.URL, `/: redirected to another origin, "` + inner.URL + `"`},
		{"the second hop goes elsewhere", "/?to=" + url.QueryEscape("/?to="+inner.URL), `/: redirected to another origin, "` + inner.URL + `"`},
		{"another name of the same host", "/?to=https://localhost:" + port, `/: redirected to another origin, "https://localhost:` + port + `"`},
		{"without protection", "/?to=http://127.0.0.1:" + port, `/: redirected to another origin, "http://127.0.0.1:` + port + `"`},
		{"another scheme", "/?to=file:///etc/passwd", `/: redirected to another origin, "file://"`},
		{"a user name", "/?to=" + url.QueryEscape("https://u:hush@127.0.0.1:"+port+"/"), `/: "https://127.0.0.1:` + port + `/" has a user name; it must have none`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := get(t, p, s.URL+test.path)
			if test.err == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, s.URL+test.err)
		})
	}
	require.NotZero(t, came.Load())
	require.Zero(t, innerCame.Load(), "no request was sent there")
}

func TestDocumentSizeIsLimited(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(`{"a":"` + strings.Repeat("x", 8<<20) + `"}`))
	require.NoError(t, z.Close())
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		err     string
	}{
		{"as large as may be", answer(`{"a":"`+strings.Repeat("x", metadata.MaxBytes-8)+`"}`, "Content-Type: application/jwk-set+json; charset=utf-8"), ""},
		{"larger", answer(`{"a":"`+strings.Repeat("x", metadata.MaxBytes-7)+`"}`, isJSON), "the response is larger than 1048576 bytes"},
		{"larger when unpacked", answer(zipped.String(), isJSON, "Content-Encoding: gzip"), "the response is larger than 1048576 bytes"},
		{"another status", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{}`)
		}, "answered by status 201"},
		{"a page", answer(`{}`, "Content-Type: text/html"), `answered by "text/html", not application/json`},
		{"of no type", answer(`{}`), `answered by "", not application/json`},
		{"no JSON", answer(`{"a":1} x`, isJSON), "the response is not the expected JSON"},
		{"a member twice", answer(`{"a":1,"a":2}`, isJSON), "the response is not the expected JSON"},
		{"no object", answer(`[]`, isJSON), "the response is not the expected JSON"},
		{"cut", answer(`{"a":`, isJSON, "Content-Length: 100"), "unexpected EOF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := httptest.NewServer(test.handler)
			defer s.Close()
			v, err := get(t, metadata.Policy{InsecureLoopback: true}, s.URL+"/x?key=hush")
			if test.err == "" {
				require.NoError(t, err)
				require.Len(t, v["a"], metadata.MaxBytes-8)
				return
			}
			require.EqualError(t, err, s.URL+"/x: "+test.err)
		})
	}
}

func TestCancelledRequestReturnsAtOnce(t *testing.T) {
	release := make(chan struct{})
	asked := make(chan struct{}, 1)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	}))
	defer s.Close()
	defer close(release)
	ctx, cancel := context.WithCancelCause(t.Context())
	// Ends with the first request.
	go func() {
		<-asked
		cancel(errors.New("enough"))
	}()
	p := metadata.Policy{InsecureLoopback: true}
	client := p.Client()
	defer client.CloseIdleConnections()
	err := p.Get(ctx, client, s.URL+"?key=hush", new(any))
	require.EqualError(t, err, s.URL+": enough")
}

func TestProxyIsNotUsed(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:9")
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:9")
	require.Nil(t, metadata.Policy{}.Client().Transport.(*http.Transport).Proxy)
}

func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{"https://a.example/", "http://127.0.0.1", "https://[::ffff:10.0.0.1]/", "https://u:hush@h/", "https://[fe80::1%25x]:1/", "https://0x7f.1/",
		"https://127.0.0.1\\@a.example/", "https://a.example#@127.0.0.1", "https://２.example", "https://%31%32%37.0.0.1/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := metadata.Policy{}.CheckURL(raw)
		if err != nil {
			return
		}
		require.Equal(t, "https", u.Scheme)
		require.Nil(t, u.User)
		require.NotEmpty(t, u.Hostname())
		if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
			require.True(t, ip.Unmap().IsGlobalUnicast() && !ip.Unmap().IsPrivate() && !ip.Unmap().IsLoopback())
		}
		again, err := metadata.Policy{}.CheckURL(u.String())
		require.NoError(t, err, "the encoded URL is allowed, too")
		require.Equal(t, u.Host, again.Host)
	})
}

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
