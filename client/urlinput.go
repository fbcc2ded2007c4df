package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A visit is the state of the URLs that a server wants the user to visit before it handles a
// request (2025-11-25, client/elicitation, "URL Elicitation Required Error"). The zero value is
// ready for use.
type visit struct {
	rounds int
	asked  map[string]struct{} // elicitation IDs that the user agreed to
}

// goOn asks the user to visit the URLs in bad and waits until the request should be sent again. It
// returns other errors unchanged.
func (v *visit) goOn(ctx context.Context, c *Client, a *agreement, bad *jsonrpc.Error) error {
	if bad.Code != protocol.CodeURLElicitationRequired || a.version.Modern() || c.cfg.handlers.elicitURL == nil {
		return bad
	}
	var data protocol.URLElicitationRequiredData
	if err := jsonx.Unmarshal(bad.Data, &data); err != nil || len(data.Elicitations) == 0 || len(data.Elicitations) > maxQuestions {
		return bad
	}
	if v.rounds == c.cfg.maxRounds {
		return fmt.Errorf("the server asked %d times for a visit to a URL and still wants more; raise MaxRounds: %w", v.rounds, bad)
	}
	ctx, stop := c.untilClose(ctx)
	defer stop()
	if v.asked == nil {
		v.asked = map[string]struct{}{}
	}
	ids := make([]string, 0, len(data.Elicitations))
	for _, q := range data.Elicitations {
		ids = append(ids, q.ElicitationID)
	}
	done, forget := c.visits.expect(ids)
	defer forget()
	again := true
	for _, q := range data.Elicitations {
		if _, ok := v.asked[q.ElicitationID]; ok {
			continue // do not ask twice
		}
		again = false
		if err := c.agree(ctx, &q); err != nil {
			return err
		}
		v.asked[q.ElicitationID] = struct{}{}
	}
	v.rounds++
	if !again {
		return nil
	}
	// The server may report when the user is done. Otherwise retry, with growing delays.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(done, func() { cancel(errVisited) })()
	if err := sleep(ctx, backoff(v.rounds)); err != nil && !errors.Is(err, errVisited) {
		return err
	}
	return nil
}

var errVisited = errors.New("the user is done")

// agree asks the user for one URL.
func (c *Client) agree(ctx context.Context, q *protocol.ElicitParams) error {
	if q.Mode != protocol.ElicitURL {
		return invalid(protocol.MethodElicitationCreate, "error %d names an elicitation that is not in URL mode", protocol.CodeURLElicitationRequired)
	}
	r, err := guarded(c, func() (*protocol.ElicitResult, error) { return c.elicit(ctx, q) })
	if err == nil && r.Action != protocol.ElicitAccept {
		err = ErrRejected
	}
	if err != nil {
		return fmt.Errorf("input request %s: %w", protocol.MethodElicitationCreate, err)
	}
	return nil
}

// visits are the URL elicitations that requests wait for. The zero value is empty.
type visits struct {
	mu      sync.Mutex
	waiting map[*expected]struct{} // guarded by mu
}

type expected struct {
	ids    map[string]struct{}
	cancel context.CancelFunc
}

// expect returns a context that is canceled when all ids are complete. The caller must call forget.
func (vs *visits) expect(ids []string) (done context.Context, forget func()) {
	e := &expected{ids: map[string]struct{}{}}
	for _, id := range ids {
		e.ids[id] = struct{}{}
	}
	done, e.cancel = context.WithCancel(context.Background())
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if vs.waiting == nil {
		vs.waiting = map[*expected]struct{}{}
	}
	vs.waiting[e] = struct{}{}
	return done, func() {
		vs.mu.Lock()
		delete(vs.waiting, e)
		vs.mu.Unlock()
		e.cancel()
	}
}

// complete marks id as complete. It ignores unknown ids.
func (vs *visits) complete(id string) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	for e := range vs.waiting {
		if delete(e.ids, id); len(e.ids) == 0 {
			e.cancel()
		}
	}
}
