package client

import (
	"context"
	"fmt"

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
	return sleep(ctx, backoff(v.rounds)) // until the user is done
}

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
