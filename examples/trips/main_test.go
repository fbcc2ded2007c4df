package main

import (
	"context"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
	"github.com/mcpkit/mcpkit-go/protocol"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

var (
	inOslo = map[string]any{"city": "Oslo"}
	dates  = map[string]any{"from": "2026-12-01"}
)

func TestBookingAsksTwiceAndHoldsOneRoom(t *testing.T) {
	for _, version := range []protocol.Version{protocol.V20250618, protocol.V20251125, protocol.V20260728} {
		t.Run(string(version), func(t *testing.T) {
			trips := &Trips{}
			s := mcptest.New(t, trips, tasks.New()).Version(version)
			s.Answer("to go to Oslo?", dates).Answer("Pay 240 euros for room 1 in Oslo", true).
				Call("book", inOslo).OK().Text("booked room 1 in Oslo from 2026-12-01")
			require.Equal(t, 1, trips.holds)
			require.Equal(t, []string{"room 1 in Oslo from 2026-12-01"}, trips.paid)
		})
	}
}

func TestBookingAsATask(t *testing.T) {
	s := mcptest.New(t, &Trips{}, tasks.New(tasks.PollInterval(10*time.Millisecond))).Tasks()
	s.Answer("to go to Oslo?", dates).Answer("Pay 240 euros", true).
		Call("book", inOslo).OK().AsTask().Text("booked room 1 in Oslo from 2026-12-01")
}

func TestTheUserDeclines(t *testing.T) {
	trips := &Trips{}
	s := mcptest.New(t, trips, tasks.New())
	s.Answer("When", mcptest.Decline).Call("book", inOslo).Error("the user declined")
	s.Answer("When", mcptest.Cancel).Call("book", inOslo).Error("the user cancelled")
	s.Answer("When", dates).Answer("Pay", false).Call("book", inOslo).OK().Text("nothing was booked")
	require.Empty(t, trips.paid)
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

func TestSeveralQuestionsAtOnce(t *testing.T) {
	s := mcptest.New(t, &Trips{}, tasks.New())
	s.Answer("Where to?", "Lisbon").Answer("When?", dates).
		Call("plan", nil).OK().Text("Lisbon from 2026-12-01, 3 nights")
}

func TestTheAtlasShowsCities(t *testing.T) {
	s := mcptest.New(t, NewAtlas(fstest.MapFS{"Oslo.jpg": {Data: []byte("\xff\xd8\xff")}}))
	s.Call("cities", map[string]any{"limit": 3}).OK().JSON(`{"cities": ["Lisbon", "Oslo", "Ottawa"], "next": "Quito"}`)
	s.Call("cities", map[string]any{"from": "Quito"}).OK().JSON(`{"cities": ["Quito"]}`)
	s.Complete("photo://{city}", "city", "O", nil).Values("Oslo", "Ottawa")

	photo := s.Read("photo://Oslo").OK().Content()[0].(*protocol.EmbeddedResource).Resource
	require.Equal(t, "\xff\xd8\xff", string(photo.Blob))
	require.Equal(t, "image/jpeg", photo.MIMEType)
	s.Read("photo://Quito").Error(`resource "photo://Quito" not found`)

	s.Call("look", map[string]any{"city": "Quito"}).Error(`there is no photo of "Quito"; call cities`)
	look, err := s.Client().CallTool(t.Context(), "look", map[string]any{"city": "Oslo"})
	require.NoError(t, err)
	require.Equal(t, mcpkit.Text("This is Oslo."), look.Content[0])
	require.Equal(t, "image/jpeg", look.Content[1].(*mcpkit.Image).MIMEType)
	require.Equal(t, "photo://Oslo", look.Content[2].(*mcpkit.Link).URI)
	require.Equal(t, `"CC0"`, string(look.Meta["example.com/license"]))
}

// A model answers every question in the same way.
type model struct{}

func (model) Sample(context.Context, *protocol.CreateMessageParams) (*protocol.CreateMessageResult, error) {
	return &protocol.CreateMessageResult{Role: protocol.RoleAssistant, Model: "m",
		Content: protocol.SamplingContents{mcpkit.Text("Cold and kind.")}}, nil
}

func TestTheModelIsAskedIfThereIsOne(t *testing.T) {
	s := mcptest.New(t, &Trips{}, tasks.New())
	s.Call("describe", inOslo).OK().Text("Oslo")
	s.Handlers(model{}).Call("describe", inOslo).OK().Text("Cold and kind.")
}
