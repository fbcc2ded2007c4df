package client_test

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Shop is the server that these tests call.
type Shop struct {
	_ mcpkit.Info `name:"shop" version:"1.2.3"`
	_ struct {
		Search  mcpkit.Tool     `hints:"readonly"`
		Tagline mcpkit.Tool     `name:"tagline"`
		Region  mcpkit.Tool     `name:"region"`
		Article mcpkit.Resource `uri:"shop://article/{id}" mime:"text/plain"`
		Hours   mcpkit.Resource `uri:"shop://hours" cache:"60s,public"`
		Advise  mcpkit.Prompt   `params:"taste" complete:"taste=Tastes"`
		Tastes  mcpkit.Skip
	}
	srv *mcpkit.Server
}

// A Hit is an article that was found.
type Hit struct {
	ID    int64  `json:"id"`
	Title string `json:"title"`
}

// SearchInput says what to look for.
type SearchInput struct {
	Query string `json:"query" validate:"required"`
	Limit int    `json:"limit,omitempty"`
}

// Search finds articles.
func (s *Shop) Search(in SearchInput) ([]Hit, error) {
	if in.Query == "" {
		return nil, mcpkit.Errorf("the query is empty")
	}
	return []Hit{{ID: 1 << 60, Title: in.Query}}, nil
}

// Tagline returns a text.
func (s *Shop) Tagline() string { return "Everything must go." }

// AddInput holds numbers.
type AddInput struct {
	A int `json:"a"`
	B int `json:"b"`
}

// Add adds numbers.
func (s *Shop) Add(in AddInput) int { return in.A + in.B }

// RegionInput is copied to headers.
type RegionInput struct {
	Region string `json:"region" header:"Region"`
	Level  int    `json:"level,omitempty" header:"Level"`
}

// Region returns the region.
func (s *Shop) Region(in RegionInput) string { return in.Region }

// Address is an address.
type Address struct {
	Street string `json:"street"`
	Gift   bool   `json:"gift" default:"true"`
}

// Order asks for the address and a confirmation.
func (s *Shop) Order(ctx context.Context, in Hit) (Address, error) {
	where, err := mcpkit.Elicit[Address](ctx, "Where to?")
	if err != nil {
		return Address{}, err
	}
	sure, err := mcpkit.Confirm(ctx, "Really?")
	if err != nil || !sure {
		return Address{}, errors.Join(err, mcpkit.Errorf("not sure"))
	}
	return where, nil
}

// Ask asks the client for a sample of its model and for its roots.
func (s *Shop) Ask(ctx context.Context) (string, error) {
	r, err := mcpkit.Sample(ctx, &protocol.CreateMessageParams{
		MaxTokens: 10, Messages: []protocol.SamplingMessage{{Role: protocol.RoleUser, Content: protocol.SamplingContents{&protocol.TextContent{Text: "hm?"}}}},
	})
	if err != nil {
		return "", err
	}
	roots, err := mcpkit.Roots(ctx)
	if err != nil {
		return "", err
	}
	return r.Content[0].(*protocol.TextContent).Text + " " + roots[0].URI, nil
}

// Count reports progress and logs.
func (s *Shop) Count(ctx context.Context, call *mcpkit.Call, log *slog.Logger) string {
	for i := range 3 {
		call.Progress(float64(i+1), 3, "counting")
		log.InfoContext(ctx, "counted")
	}
	return "done"
}

// Wait waits until it is cancelled.
func (s *Shop) Wait(ctx context.Context, call *mcpkit.Call) (string, error) {
	call.Progress(1, 2, "waiting")
	<-ctx.Done()
	return "", ctx.Err()
}

// Article returns an article.
func (s *Shop) Article(id string) string { return "article " + id }

// Hours returns the time, so that each read differs.
func (s *Shop) Hours() string { return time.Unix(0, time.Now().UnixNano()).String() }

// Advise asks for advice.
func (s *Shop) Advise(taste string) string { return "What goes with " + taste + "?" }

// Tastes completes.
func (s *Shop) Tastes(_ context.Context, prefix string) ([]string, error) {
	return []string{prefix + "1", prefix + "2"}, nil
}

// newShop returns a shop.
func newShop(log *slog.Logger) (*mcpkit.Server, error) {
	s := &Shop{}
	srv, err := mcpkit.New(s, mcpkit.Logger(log), mcpkit.PageSize(2), mcpkit.ListTTL(time.Minute))
	s.srv = srv
	return srv, err
}
