package main

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/examples/internal/rawclient"
	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

func serve(t *testing.T) (trips *Trips, url string) {
	trips = &Trips{}
	srv, err := mcpkit.New(trips, tasks.New())
	require.NoError(t, err)
	handler := streamable.NewHandler(srv, nil)
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		handler.Close()
		_ = srv.Close()
		server.Close()
	})
	return trips, server.URL
}

// A user answers questions by their text, and records them.
type user struct {
	answers map[string]string // results, by a part of the question

	mu    sync.Mutex
	asked []string
}

func (u *user) answer(method string, params json.RawMessage) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var p struct{ Message string }
	_ = json.Unmarshal(params, &p)
	question := p.Message
	if method != "elicitation/create" {
		question = method
	}
	u.asked = append(u.asked, question)
	for part, answer := range u.answers {
		if strings.Contains(question, part) {
			return answer
		}
	}
	return `{"action":"cancel"}`
}

func eachEra(t *testing.T, facts func(t *testing.T, version string)) {
	for _, version := range []string{rawclient.Legacy, rawclient.Modern} {
		t.Run(version, func(t *testing.T) { facts(t, version) })
	}
}

const accept = `{"action":"accept","content":`

func TestBooking(t *testing.T) {
	eachEra(t, func(t *testing.T, version string) {
		trips, url := serve(t)
		u := &user{answers: map[string]string{
			"When": accept + `{"from":"2026-12-01","nights":2}}`,
			"Pay":  accept + `{"confirm":true}}`,
		}}
		c := rawclient.Answering(t, version, url, u.answer)
		require.Equal(t, "booked room 1 in Oslo from 2026-12-01", c.CallTool("book", `{"city":"Oslo"}`).Text())
		require.Equal(t, []string{"When do you want to go to Oslo?", "Pay 160 euros for room 1 in Oslo from 2026-12-01?"}, u.asked)
		require.Equal(t, 1, trips.holds, "the method ran several times")
		require.Equal(t, []string{"room 1 in Oslo from 2026-12-01"}, trips.paid)
	})
}

// docs:begin again
func TestARepeatedLastRoundMakesOneOrder(t *testing.T) {
	trips := &Trips{}
	s := mcptest.New(t, trips, tasks.New()).Answer("Buy a ticket", true)
	s.Call("ticket", map[string]any{"city": "Oslo"}).OK().
		Again().OK().TextContains("ordered a ticket to Oslo")
	require.Len(t, trips.tickets, 1)
}

// docs:end again

func TestUserDeclines(t *testing.T) {
	eachEra(t, func(t *testing.T, version string) {
		for _, test := range []struct {
			name    string
			answers map[string]string
			want    string
			isError bool
		}{
			{"declines the dates", map[string]string{"When": `{"action":"decline"}`}, "the user declined", true},
			{"closes the form", nil, "the user cancelled", true},
			{"declines to pay", map[string]string{"When": accept + `{"from":"2026-12-01"}}`, "Pay": `{"action":"decline"}`}, "nothing was booked", false},
			{"says no", map[string]string{"When": accept + `{"from":"2026-12-01"}}`, "Pay": accept + `{"confirm":false}}`}, "nothing was booked", false},
		} {
			t.Run(test.name, func(t *testing.T) {
				trips, url := serve(t)
				c := rawclient.Answering(t, version, url, (&user{answers: test.answers}).answer)
				result := c.CallTool("book", `{"city":"Oslo"}`)
				require.Equal(t, test.want, result.Text())
				require.Equal(t, test.isError, result.IsError)
				require.Empty(t, trips.paid)
			})
		}
	})
}

func TestSeveralQuestionsAtOnce(t *testing.T) {
	eachEra(t, func(t *testing.T, version string) {
		_, url := serve(t)
		u := &user{answers: map[string]string{"Where": accept + `{"choice":"Lisbon"}}`, "When": accept + `{"from":"2026-12-01"}}`}}
		c := rawclient.Answering(t, version, url, u.answer)
		require.Equal(t, "Lisbon from 2026-12-01, 3 nights", c.CallTool("plan", `{}`).Text())
		require.ElementsMatch(t, []string{"Where to?", "When?"}, u.asked)
	})
}

func TestTheModelIsAskedIfThereIsOne(t *testing.T) {
	eachEra(t, func(t *testing.T, version string) {
		_, url := serve(t)
		u := &user{answers: map[string]string{"sampling": `{"role":"assistant","content":{"type":"text","text":"Cold and kind."},"model":"m"}`}}
		require.Equal(t, "Cold and kind.", rawclient.Answering(t, version, url, u.answer).CallTool("describe", `{"city":"Oslo"}`).Text())
		require.Equal(t, "Oslo", rawclient.HTTP(t, version, url).CallTool("describe", `{"city":"Oslo"}`).Text())
	})
}

func TestRoots(t *testing.T) {
	eachEra(t, func(t *testing.T, version string) {
		_, url := serve(t)
		u := &user{answers: map[string]string{"roots": `{"roots":[{"uri":"file:///home/ada"}]}`}}
		require.Equal(t, `["file:///home/ada"]`, rawclient.Answering(t, version, url, u.answer).CallTool("where", `{}`).Text())
	})
}
