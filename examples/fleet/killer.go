package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// maxKills limits one request to kill replicas.
const maxKills = 1000

// killPause is the pause of killOne for clients of tests.
const killPause = 400 * time.Millisecond

// A killer lets a client of a test kill replicas while it calls them:
//
//	POST /kill?n=8       kills eight replicas, one after the other, and starts them again
//	GET /kill?client=A   {"left":7,"missed":1}: how many are still to be killed, and how many responses to messages with "X-Client: A" died with their replica
//
// Clients may kill at the same time: each has its own number.
type killer struct {
	shop *shop
	ctx  context.Context
	end  context.CancelFunc
	all  sync.WaitGroup

	turn sync.Mutex // held to kill one replica
	next int        // the replica; guarded by turn

	mu   sync.Mutex
	left int // guarded by mu
}

func newKiller(s *shop) *killer {
	k := &killer{shop: s}
	k.ctx, k.end = context.WithCancel(context.Background())
	return k
}

// ServeHTTP implements [http.Handler].
func (k *killer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		n, err := strconv.Atoi(r.FormValue("n"))
		if err != nil || n < 1 || n > maxKills {
			http.Error(w, "n is the number of replicas to kill", http.StatusBadRequest)
			return
		}
		k.mu.Lock()
		k.left += n
		k.mu.Unlock()
		k.all.Go(func() { k.kill(n) })
	}
	k.mu.Lock()
	left := k.left
	k.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]int{"left": left, "missed": k.shop.proxy.missedBy(r.FormValue("client"))})
}

// kill kills n replicas, unless the killer is closed.
func (k *killer) kill(n int) {
	for range n {
		if err := k.killNext(); err != nil {
			if k.ctx.Err() == nil {
				log.Print(err)
			}
			return // left tells that something is wrong
		}
		k.mu.Lock()
		k.left--
		k.mu.Unlock()
	}
}

func (k *killer) killNext() error {
	k.turn.Lock()
	defer k.turn.Unlock()
	i := k.next
	k.next = (k.next + 1) % len(k.shop.replicas)
	return k.shop.killOne(k.ctx, i, killPause)
}

// close ends the killing.
func (k *killer) close() {
	k.end()
	k.all.Wait()
}
