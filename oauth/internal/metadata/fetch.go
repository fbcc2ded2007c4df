package metadata

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/publicnet"
)

// MaxBytes is the largest document that is read, in bytes.
const MaxBytes = 1 << 20

const timeout = 10 * time.Second // of one request, with all redirects

const maxRedirects = 3

// A Policy decides which URLs and addresses are allowed. The zero value is the strictest: https and
// public addresses only.
type Policy struct {
	// InsecureLoopback also allows loopback addresses, with http or https. For development and
	// tests.
	InsecureLoopback bool
	// PrivateNetworks are non-public networks that are allowed with https.
	PrivateNetworks []netip.Prefix
	// TLS configures connections. Nil means the system's defaults.
	TLS *tls.Config
	// Resolver looks up names. Nil means net.DefaultResolver. The resulting addresses are checked.
	Resolver *net.Resolver
}

// CheckURL parses a URL and returns an error if it is not allowed. Addresses are checked again when
// they are dialed, because a name may then resolve to another address.
func (p Policy) CheckURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is not a URL", Shown(raw))
	case u.User != nil:
		return nil, fmt.Errorf("%q has a user name; it must have none", Shown(raw))
	case u.Host == "" || u.Hostname() == "":
		return nil, fmt.Errorf("%q is not an absolute https URL", Shown(raw))
	case u.Scheme == "https":
	case u.Scheme == "http" && p.InsecureLoopback && IsLoopback(u.Hostname()):
	case u.Scheme == "http" && IsLoopback(u.Hostname()):
		return nil, fmt.Errorf("%q is not encrypted; use https, or set InsecureLoopback for development", Shown(raw))
	case u.Scheme == "http":
		return nil, fmt.Errorf("%q is not encrypted; use https", Shown(raw))
	default:
		return nil, fmt.Errorf("%q is not an absolute https URL", Shown(raw))
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		if err := p.checkAddr(ip); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// Shown returns the part of a URL that errors and logs may contain: without user, password and
// query, any of which may be secret. The text need not be a valid URL.
func Shown(raw string) string {
	if u, err := url.Parse(raw); err == nil && u.Host != "" {
		return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
	}
	if end := strings.IndexAny(raw, "?#"); end >= 0 {
		raw = raw[:end]
	}
	return raw[strings.LastIndexByte(raw, '@')+1:]
}

// IsLoopback reports whether a host always means this machine.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func (p Policy) checkAddr(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	if ip.IsLoopback() && p.InsecureLoopback {
		return nil
	}
	for _, network := range p.PrivateNetworks {
		if network.Contains(ip) {
			return nil
		}
	}
	return publicnet.Check(ip)
}

// Client returns a client that enforces the policy. It uses no proxy, because a proxy would choose
// the address.
func (p Policy) Client() *http.Client {
	dialer := &net.Dialer{Timeout: timeout, Resolver: p.Resolver, Control: publicnet.Control(p.checkAddr)}
	return &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSClientConfig:        p.TLS,
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    timeout,
			ResponseHeaderTimeout:  timeout,
			IdleConnTimeout:        30 * time.Second,
			MaxIdleConns:           8,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: p.checkRedirect,
	}
}

func (p Policy) checkRedirect(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	if next.URL.Scheme != first.Scheme || !strings.EqualFold(next.URL.Host, first.Host) {
		return fmt.Errorf("redirected to another origin, %q", next.URL.Scheme+"://"+next.URL.Host)
	}
	if len(via) > maxRedirects {
		return fmt.Errorf("redirected more than %d times", maxRedirects)
	}
	_, err := p.CheckURL(next.URL.String())
	return err
}

// A StatusError reports a response with a status other than 200.
type StatusError struct{ Status int }

// Error returns the status.
func (e *StatusError) Error() string { return fmt.Sprintf("answered by status %d", e.Status) }

// A TemporaryError is an error of something that may work later, such as a connection on which a
// response did not arrive completely. HTTP/2 has errors of types that are not exported.
type TemporaryError struct{ Err error }

// Error returns the text of the error.
func (e *TemporaryError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *TemporaryError) Unwrap() error { return e.Err }

// JSON sends req and decodes the JSON document of the response into v. It returns a [*StatusError]
// for a status other than 200.
func JSON(client *http.Client, req *http.Request, v any) error {
	req.Header.Set("Accept", "application/json")
	resp, err := Send(client, req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return &StatusError{resp.StatusCode}
	}
	if ct, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil ||
		ct != "application/json" && !strings.HasSuffix(ct, "+json") {
		return fmt.Errorf("answered by %q, not application/json", resp.Header.Get("Content-Type"))
	}
	body, err := ReadAll(resp)
	if err != nil {
		return err
	}
	if err := jsonx.Unmarshal(body, v); err != nil {
		return errors.New("the response is not the expected JSON")
	}
	return nil
}

// Send sends req. Its errors are [*TemporaryError], and do not contain the URL, whose query may be
// secret.
func Send(client *http.Client, req *http.Request) (*http.Response, error) {
	resp, err := client.Do(req)
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if err != nil {
		return nil, &TemporaryError{err}
	}
	return resp, nil
}

// ReadAll reads the body of a response. A body larger than [MaxBytes] is an error.
func ReadAll(resp *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxBytes+1))
	switch {
	case err != nil:
		return nil, &TemporaryError{err}
	case len(body) > MaxBytes:
		return nil, fmt.Errorf("the response is larger than %d bytes", MaxBytes)
	}
	return body, nil
}

// WithoutRedirects returns a copy of client that returns redirects instead of following them, which
// would forward credentials.
func WithoutRedirects(client *http.Client) *http.Client {
	c := *client
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// Get is like [JSON], for a GET of a URL that the policy allows.
func (p Policy) Get(ctx context.Context, client *http.Client, raw string, v any) error {
	u, err := p.CheckURL(raw)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	if err := JSON(client, req, v); err != nil {
		return fmt.Errorf("%s: %w", Shown(raw), err)
	}
	return nil
}

// AuthorizationServer reads the metadata of an issuer. It rejects metadata that names another issuer
// (RFC 8414, section 3.3).
func (p Policy) AuthorizationServer(
	ctx context.Context, client *http.Client, issuer string,
) (*AuthorizationServer, error) {
	urls, err := AuthorizationServerURLs(issuer)
	if err != nil {
		return nil, err
	}
	var faults []error
	for _, u := range urls {
		as := new(AuthorizationServer)
		switch err := p.Get(ctx, client, u, as); {
		case err != nil:
			faults = append(faults, err)
		case as.Issuer != issuer:
			return nil, fmt.Errorf("the metadata of the authorization server %q names the issuer %q", issuer, as.Issuer)
		default:
			return as, nil
		}
	}
	return nil, fmt.Errorf("metadata of the authorization server %q: %w", issuer, errors.Join(faults...))
}
