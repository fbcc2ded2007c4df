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
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/protocol"
)

// Header fields of the clients of the test.
const (
	headerClient = "X-Client" // its name
	headerCut    = "X-Cut"    // the proxy cuts some of its streams
)

const maxBody = 8 << 20

// A proxy gives each request to the next replica. If a replica refuses the connection, so that it
// got nothing of the request, the proxy tries the next one.
type proxy struct {
	reverse *httputil.ReverseProxy

	mu       sync.Mutex
	replicas []string // addresses; "" for those that do not run; guarded by mu
	next     int      // guarded by mu
	via      map[string]*http.Transport
	broke    map[string]time.Time // when a client last lost a response with its replica; guarded by mu
	missed   map[string]int       // how many responses to POST a client has lost, without those that only notify; guarded by mu
	lost     int                  // responses that were lost with their replica; guarded by mu
	cut      int                  // streams that the proxy cut; guarded by mu
}

func newProxy(n int) *proxy {
	p := &proxy{replicas: make([]string, n), via: map[string]*http.Transport{}, broke: map[string]time.Time{}, missed: map[string]int{}}
	p.reverse = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: "replica"})
			r.Out.Host = r.In.Host
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
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	p.reverse.ServeHTTP(w, r)
}

// set replaces the address of a replica; "" if it does not run.
func (p *proxy) set(i int, address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.replicas[i]; old != "" {
		p.via[old].CloseIdleConnections()
		delete(p.via, old)
	}
	p.replicas[i] = address
	if address != "" {
		p.via[address] = &http.Transport{MaxIdleConnsPerHost: 100}
	}
}

// choose returns the address of the next replica that runs, and the connections to it.
func (p *proxy) choose() (string, *http.Transport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range p.replicas {
		p.next = (p.next + 1) % len(p.replicas)
		if address := p.replicas[p.next]; address != "" {
			return address, p.via[address]
		}
	}
	return "", nil
}

// RoundTrip implements [http.RoundTripper].
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	err := errors.New("no replica runs")
	for range 2 * len(p.replicas) {
		address, via := p.choose()
		if via == nil {
			break
		}
		again := r.Clone(r.Context())
		again.URL.Host = address
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
		var resp *http.Response
		if resp, err = via.RoundTrip(again); err == nil {
			return resp, nil
		}
		if dial, ok := errors.AsType[*net.OpError](err); !ok || dial.Op != "dial" {
			break
		}
	}
	p.note(r, err)
	return nil, err
}

// note records a response that was lost with its replica.
func (p *proxy) note(r *http.Request, err error) {
	if errors.Is(err, context.Canceled) || r.Context().Err() != nil {
		return // the client left
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost++
	client := r.Header.Get(headerClient)
	p.broke[client] = time.Now()
	if r.Method == http.MethodPost && r.Header.Get("Mcp-Method") != protocol.MethodSubscriptionsListen {
		p.missed[client]++
	}
}

// missedBy returns how many responses to its messages a client has lost.
func (p *proxy) missedBy(client string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.missed[client]
}

// brokeSince reports whether a client has lost a response with its replica since then.
func (p *proxy) brokeSince(client string, then time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broke[client].After(then)
}

func (p *proxy) counts() (lost, cut int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost, p.cut
}

// watch notices when the replica of a response dies, and cuts some streams.
func (p *proxy) watch(resp *http.Response) error {
	r := resp.Request
	stream := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	resp.Body = &watched{ReadCloser: resp.Body, p: p, r: r, cut: stream && r.Method == http.MethodPost && r.Header.Get(headerCut) != "" && rand.IntN(4) == 0}
	return nil
}

type watched struct {
	io.ReadCloser
	p   *proxy
	r   *http.Request
	cut bool // after an event that has an ID
	now bool
}

var errCut = errors.New("the proxy cut the stream")

func (b *watched) Read(data []byte) (int, error) {
	if b.now {
		b.p.mu.Lock()
		b.p.cut++
		b.p.mu.Unlock()
		return 0, errCut
	}
	n, err := b.ReadCloser.Read(data)
	b.now = b.cut && err == nil && bytes.Contains(data[:n], []byte("id: "))
	if err != nil && err != io.EOF {
		b.p.note(b.r, err)
	}
	return n, err
}
