package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/protocol"
)

// headerClient is the name of the client.
const headerClient = "X-Client"

// A proxy gives each request to the next replica. If that one refuses the connection, and so got
// nothing of the request, the proxy tries the next one.
type proxy struct {
	reverse *httputil.ReverseProxy

	mu  sync.Mutex
	all [replicas]struct { // guarded by mu
		address string
		via     *http.Transport
	}
	next   int                  // guarded by mu
	losses map[string]time.Time // when a client last lost a response with its replica; guarded by mu
	lost   int                  // responses that were lost with their replica; guarded by mu
	cut    int                  // streams that were cut; guarded by mu
}

func newProxy() *proxy {
	p := &proxy{losses: map[string]time.Time{}}
	p.reverse = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "replica", r.In.Host
			r.SetXForwarded()
		},
		Transport:      p,
		FlushInterval:  -1,
		ModifyResponse: p.watch,
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		ErrorLog:       log.New(io.Discard, "", 0),
	}
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client left
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	p.reverse.ServeHTTP(w, r)
}

// set replaces the address of a replica.
func (p *proxy) set(i int, address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.all[i].via; old != nil {
		old.CloseIdleConnections()
	}
	p.all[i].address, p.all[i].via = address, &http.Transport{MaxIdleConnsPerHost: 100}
}

// RoundTrip implements [http.RoundTripper].
func (p *proxy) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	for range replicas {
		p.mu.Lock()
		p.next = (p.next + 1) % replicas
		to := p.all[p.next]
		p.mu.Unlock()
		again := r.Clone(r.Context())
		again.URL.Host = to.address
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
		if resp, err = to.via.RoundTrip(again); err == nil {
			return resp, nil
		}
		if dial, ok := errors.AsType[*net.OpError](err); !ok || dial.Op != "dial" {
			break
		}
	}
	p.lose(r, err)
	return nil, err
}

// lose records a response that was lost with its replica.
func (p *proxy) lose(r *http.Request, err error) {
	if errors.Is(err, context.Canceled) || r.Context().Err() != nil {
		return // the client left
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost++
	p.losses[r.Header.Get(headerClient)] = time.Now()
}

// lostSince reports whether a client has lost a response with its replica since then.
func (p *proxy) lostSince(client string, then time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.losses[client].After(then)
}

// watch notices when the replica of a response dies, and cuts some streams that clients can resume
// or open again: those of listeners, and legacy ones with event IDs.
func (p *proxy) watch(resp *http.Response) error {
	r := resp.Request
	listens := r.Method == http.MethodGet || r.Header.Get("Mcp-Method") == protocol.MethodSubscriptionsListen
	legacy := r.Header.Get("Mcp-Protocol-Version") < string(protocol.V20260728)
	stream := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	resp.Body = &watched{ReadCloser: resp.Body, p: p, r: r, listens: listens,
		cut: stream && (listens || legacy) && rand.IntN(4) == 0}
	return nil
}

// A watched body ends with an error at the read that follows an event, if it is to be cut.
type watched struct {
	io.ReadCloser
	p            *proxy
	r            *http.Request
	listens, cut bool
	now          bool
}

var errCut = errors.New("the proxy cut the stream")

func (b *watched) Read(data []byte) (int, error) {
	if b.now {
		b.p.mu.Lock()
		defer b.p.mu.Unlock()
		b.p.cut++
		return 0, errCut
	}
	n, err := b.ReadCloser.Read(data)
	b.now = b.cut && err == nil && (b.listens || bytes.Contains(data[:n], []byte("id: ")))
	if err != nil && err != io.EOF {
		b.p.lose(b.r, err)
	}
	return n, err
}
