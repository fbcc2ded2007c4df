package oauthclient

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	callbackPath     = "/callback"
	maxCallbackBytes = 16 << 10
	callbackTimeout  = 10 * time.Second
)

// LoopbackOptions configures [Loopback]. The zero value is ready to use.
type LoopbackOptions struct {
	// Port is the TCP port to listen on. Zero means any free port, which authorization servers
	// should allow (RFC 8252, section 7.3); set a fixed port for those that do not. Later logins
	// reuse the port of a stored registration, if it is free. A changed port means a new
	// registration.
	Port int
	// Open shows a page to the user. Nil means [OpenBrowser].
	Open func(ctx context.Context, page string) error
}

// Loopback returns the [Browser] for programs on the user's machine. It listens on a loopback
// address for the redirect for as long as the login lasts (RFC 8252, section 7.3). Nil options are
// the zero value.
func Loopback(opts *LoopbackOptions) Browser {
	opts = cmp.Or(opts, &LoopbackOptions{})
	open := opts.Open
	if open == nil {
		open = OpenBrowser
	}
	return func(ctx context.Context, request LoginRequest) (*Login, error) {
		path, registered := callbackAt(request)
		l, err := listen(ctx, cmp.Or(opts.Port, registered))
		if err != nil && opts.Port == 0 {
			l, err = listen(ctx, 0)
		}
		if err != nil {
			return nil, err
		}
		cb := &callback{host: l.Addr().String(), path: path, back: make(chan url.Values, 1)}
		server := &http.Server{
			Handler:           cb,
			ReadHeaderTimeout: callbackTimeout, ReadTimeout: callbackTimeout, WriteTimeout: callbackTimeout,
			MaxHeaderBytes: maxCallbackBytes,
		}
		ended := make(chan struct{})
		// Ends when Close closes the server.
		go func() {
			defer close(ended)
			_ = server.Serve(l)
		}()
		return &Login{
			RedirectURI: "http://" + cb.host + path,
			Visit: func(ctx context.Context, page string) (url.Values, error) {
				if err := cb.expect(page); err != nil {
					return nil, err
				}
				if err := open(ctx, page); err != nil {
					return nil, fmt.Errorf("the browser: %w", err)
				}
				select {
				case q := <-cb.back:
					return q, nil
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
			},
			Close: func() {
				// Let the response page reach the browser.
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				if server.Shutdown(ctx) != nil {
					_ = server.Close()
				}
				<-ended
			},
		}, nil
	}
}

// callbackAt returns the path of the redirect URI, and the port if the client's registration has
// one.
func callbackAt(request LoginRequest) (path string, port int) {
	path = callbackPath
	if request.Distinct {
		sum := sha256.Sum256([]byte(request.Issuer))
		path += "/" + hex.EncodeToString(sum[:8])
	}
	u, err := url.Parse(request.RedirectURI)
	if err != nil || u.Scheme != "http" || u.Hostname() != "127.0.0.1" || u.Path == "" ||
		request.Distinct && u.Path != path {
		return path, 0
	}
	port, _ = strconv.Atoi(u.Port()) // 0 for none
	return u.Path, port
}

func listen(ctx context.Context, port int) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// A callback is the HTTP handler that receives the redirect of one login. It rejects all other
// requests, for example those of other pages in the browser.
type callback struct {
	host, path string
	state      atomic.Pointer[string] // state of the login; nil before it starts
	back       chan url.Values
}

// expect starts a login: only a redirect with the state of the page is accepted.
func (c *callback) expect(page string) error {
	u, err := url.Parse(page)
	if err != nil || u.Query().Get("state") == "" {
		return errors.New("the page of the authorization server has no state")
	}
	state := u.Query().Get("state")
	c.state.Store(&state)
	return nil
}

func (c *callback) isAnswer(q url.Values) bool {
	want := c.state.Load()
	return want != nil && len(q["state"]) == 1 && subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(*want)) == 1
}

// ServeHTTP accepts the first valid redirect. Its page repeats no part of the request.
func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer") // the URL has the code
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Connection", "close")
	q := r.URL.Query()
	switch {
	// Another host name for this address may belong to an attacker (DNS rebinding).
	case r.Host != c.host || r.URL.Path != c.path:
		http.Error(w, "There is nothing here.", http.StatusNotFound)
		return
	case r.Method != http.MethodGet:
		http.Error(w, "Only GET.", http.StatusMethodNotAllowed)
		return
	case !c.isAnswer(q):
		http.Error(w, "This is not the response to a login.", http.StatusBadRequest)
		return
	}
	select {
	case c.back <- q:
	default: // a redirect was accepted before
	}
	_, _ = w.Write([]byte("<!doctype html><title>Login</title><p>You can close this page and go back to the program."))
}

// OpenBrowser shows a page in the user's browser. It accepts http and https URLs only, and starts
// no shell. It returns an error if the URL is not allowed or the browser does not start.
func OpenBrowser(ctx context.Context, page string) error {
	u, err := url.Parse(page)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return errors.New("only http and https URLs can be opened")
	}
	var args []string
	switch runtime.GOOS {
	case "windows":
		args = []string{"rundll32", "url.dll,FileProtocolHandler"}
	case "darwin":
		args = []string{"open"}
	default:
		args = []string{"xdg-open"}
	}
	// The command may live as long as the browser, so it does not end with ctx.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), args[0], append(args[1:], u.String())...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	// Ends when the browser command does. Wait releases its process.
	go func() { _ = cmd.Wait() }()
	return nil
}
