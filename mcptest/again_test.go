package mcptest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Kiosk sells tickets. Careless orders twice if the last round is repeated.
type Kiosk struct {
	_ struct {
		Careful  mcpkit.Tool     `hints:"additive"`
		Careless mcpkit.Tool     `hints:"additive"`
		Count    mcpkit.Tool     `hints:"readonly"`
		Receipt  mcpkit.Resource `uri:"kiosk://receipt"`
		Greet    mcpkit.Prompt
	}
	orders map[string]bool
	made   int
}

func (k *Kiosk) Careful(ctx context.Context) (string, error) {
	id, err := mcpkit.Once(ctx, "order", func() (string, error) { k.made++; return fmt.Sprint(k.made), nil })
	if err != nil {
		return "", err
	}
	if _, err := mcpkit.Confirm(ctx, "Order?"); err != nil {
		return "", err
	}
	k.orders[id] = true
	return "order " + id, nil
}

func (k *Kiosk) Careless(ctx context.Context) (string, error) {
	if _, err := mcpkit.Confirm(ctx, "Order?"); err != nil {
		return "", err
	}
	k.made++
	return fmt.Sprint("order ", k.made), nil
}

func (k *Kiosk) Count() int { return len(k.orders) - 1 }

func (k *Kiosk) Receipt(ctx context.Context) (string, error) {
	_, err := mcpkit.Confirm(ctx, "Show it?")
	return "paid", err
}

func (k *Kiosk) Greet(ctx context.Context) (string, error) {
	_, err := mcpkit.Confirm(ctx, "Greet?")
	return "Hello", err
}

func TestTheLastRoundIsRepeated(t *testing.T) {
	mcptest.EachVersion(t, func(t *testing.T) *mcptest.Server {
		return mcptest.New(t, &Kiosk{orders: map[string]bool{}})
	}, func(t *testing.T, s *mcptest.Server) {
		if s.Client().Version() < protocol.V20250618 {
			t.Skip("this version has no questions")
		}
		s = s.Answer("Order?", true).Answer("Show it?", true).Answer("Greet?", true)
		first := s.Call("careful", nil).OK().Text("order 1")
		first.Again().OK().Text("order 1").Again().OK().Text("order 1")
		s.Read("kiosk://receipt").OK().Again().OK().Text("paid")
		s.Prompt("greet", nil).OK().Again().OK().Text("user: Hello")
		again := s.Call("careless", nil).OK().Text("order 2").Again().OK()
		if s.Client().Version().Modern() {
			again.Text("order 3")
		}
	})
}

func TestAgainNeedsAQuestion(t *testing.T) {
	said := failures(t, func(t testing.TB) {
		s := mcptest.New(t, &Kiosk{orders: map[string]bool{}}).Answer("Order?", true)
		s.Call("careful", nil).OK()
		s.Call("count", nil).OK().Again() // the round of careful is not that of count
	})
	require.Equal(t, []string{"call count\nwant: a question, so that Again can repeat the round with its answer\n got: success, \"0\""}, said)
}
