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

// LoopbackOptions are those of [Loopback]. The zero value serves.
type LoopbackOptions struct {
	// Port to listen at. Zero means any that is free, which authorization servers should allow (RFC 8252, section 7.3);
	// those that do not need one that stays the same. Later logins use the port of the one before, also of one that a
	// run before registered, if it is still free: to a server that registers clients, one at another port is another
	// client.
	Port int
	// Open shows a page to the user. Nil means the browser of the system.
	Open func(ctx context.Context, page string) error
}

// Loopback is the front of programs on the user's machine: users come back to an address of the machine itself, at which
// a server listens for the time of the login (RFC 8252, section 7.3).
func Loopback(opts *LoopbackOptions) Browser {
	if opts == nil {
		opts = &LoopbackOptions{}
	}
	open := opts.Open
	if open == nil {
		open = OpenBrowser
	}
	var before atomic.Int32 // port of the login before; 0 for none
	return func(ctx context.Context, request LoginRequest) (*Login, error) {
		path, registered := callbackAt(request)
		l, err := listen(ctx, cmp.Or(opts.Port, int(before.Load()), registered))
		if err != nil && opts.Port == 0 {
			l, err = listen(ctx, 0)
		}
		if err != nil {
			return nil, err
		}
		if addr, ok := l.Addr().(*net.TCPAddr); ok {
			before.Store(int32(addr.Port))
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
				// The page that says so should still arrive.
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

// callbackAt is where users come back to: the path, and the port if the client is registered with one.
func callbackAt(request LoginRequest) (path string, port int) {
	path = callbackPath
	if request.Distinct {
		sum := sha256.Sum256([]byte(request.Issuer))
		path += "/" + hex.EncodeToString(sum[:8])
	}
	u, err := url.Parse(request.RedirectURI)
	if err != nil || u.Scheme != "http" || u.Hostname() != "127.0.0.1" || u.Path == "" || request.Distinct && u.Path != path {
		return path, 0
	}
	port, _ = strconv.Atoi(u.Port()) // 0 for none
	return u.Path, port
}

func listen(ctx context.Context, port int) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// A callback takes the answer to one login. What else comes by, from another page of the browser for example, is sent away
// without an effect on the login.
type callback struct {
	host, path string
	state      atomic.Pointer[string] // of the login; nil before it began
	back       chan url.Values
}

// expect begins a login: its answer has the state of the page.
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

// ServeHTTP takes the first answer. It repeats nothing of it in its page.
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
	// Another name for this address may be a stranger's.
	case r.Host != c.host || r.URL.Path != c.path:
		http.Error(w, "There is nothing here.", http.StatusNotFound)
		return
	case r.Method != http.MethodGet:
		http.Error(w, "Only GET.", http.StatusMethodNotAllowed)
		return
	case !c.isAnswer(q):
		http.Error(w, "This is no answer to a login.", http.StatusBadRequest)
		return
	}
	select {
	case c.back <- q:
	default: // there was one
	}
	_, _ = w.Write([]byte("<!doctype html><title>Login</title><p>You can close this page and go back to the program."))
}

// OpenBrowser shows a page in the user's browser. It takes http and https URLs alone, and no shell sees them.
func OpenBrowser(ctx context.Context, page string) error {
	u, err := url.Parse(page)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return errors.New("only http and https pages are shown")
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
	// The program may live as long as the browser does, so that it does not end with ctx.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), args[0], append(args[1:], u.String())...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	// Ends when the program does; waits so that it leaves no zombie.
	go func() { _ = cmd.Wait() }()
	return nil
}
