package fleet_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// unreached returns a fleet whose engine panics when it is called.
func unreached() *fleet.Fleet {
	return fleet.New(struct{ fleet.Engine }{}, fleet.Options{Seal: seal, Open: open, Logger: slog.New(slog.DiscardHandler)})
}

func TestNamesThatAreNotAllowedDoNotReachTheEngine(t *testing.T) {
	f := unreached()
	keep := fleet.Keep{Entries: 1, Bytes: 1, TTL: time.Hour}
	record := func(key, group string) fleet.Record { return fleet.Record{Key: key, Group: group, TTL: time.Hour} }
	type operation func(ctx context.Context, name string) error
	required := map[string]operation{
		"Get, set": func(ctx context.Context, n string) error { _, err := f.Set(n, 1).Get(ctx, "a"); return err },
		"Get, key": func(ctx context.Context, n string) error { _, err := f.Set("set", 1).Get(ctx, n); return err },
		"Create, set": func(ctx context.Context, n string) error {
			_, err := f.Set(n, 1).Create(ctx, record("a", ""))
			return err
		},
		"Create, key": func(ctx context.Context, n string) error {
			_, err := f.Set("set", 1).Create(ctx, record(n, ""))
			return err
		},
		"Update, set": func(ctx context.Context, n string) error {
			_, err := f.Set(n, 1).Update(ctx, record("a", ""))
			return err
		},
		"Update, key": func(ctx context.Context, n string) error {
			_, err := f.Set("set", 1).Update(ctx, record(n, ""))
			return err
		},
		"Delete, set":   func(ctx context.Context, n string) error { return f.Set(n, 1).Delete(ctx, "a", 0) },
		"Delete, key":   func(ctx context.Context, n string) error { return f.Set("set", 1).Delete(ctx, n, 0) },
		"Due":           func(ctx context.Context, n string) error { _, err := f.Set(n, 1).Due(ctx, 0, 1); return err },
		"List, set":     func(ctx context.Context, n string) error { _, err := f.Set(n, 1).List(ctx, "g", "", 1); return err },
		"List, group":   func(ctx context.Context, n string) error { _, err := f.Set("set", 1).List(ctx, n, "", 1); return err },
		"Count":         func(ctx context.Context, n string) error { _, err := f.Set(n, 1).Count(ctx, ""); return err },
		"Append, group": func(ctx context.Context, n string) error { return f.Append(ctx, n, "l", fleet.Entry{Seq: 1}, keep) },
		"Append, log":   func(ctx context.Context, n string) error { return f.Append(ctx, "g", n, fleet.Entry{Seq: 1}, keep) },
		"After, group":  func(ctx context.Context, n string) error { _, err := f.After(ctx, n, "l", 0, 1); return err },
		"After, log":    func(ctx context.Context, n string) error { _, err := f.After(ctx, "g", n, 0, 1); return err },
		"Drop":          func(ctx context.Context, n string) error { return f.Drop(ctx, n) },
	}
	optional := map[string]operation{
		"Create, group": func(ctx context.Context, n string) error {
			_, err := f.Set("set", 1).Create(ctx, record("a", n))
			return err
		},
		"List, after":  func(ctx context.Context, n string) error { _, err := f.Set("set", 1).List(ctx, "g", n, 1); return err },
		"Count, group": func(ctx context.Context, n string) error { _, err := f.Set("set", 1).Count(ctx, n); return err },
	}
	names := []string{"", " ", "a b", "a.b", "a:b", "a/b", "a*", "a>", "{a}", "ä", "a\x00", "a\n", strings.Repeat("x", 65), "\xff"}
	for i, name := range names {
		for what, operation := range required {
			require.ErrorIs(t, operation(t.Context(), name), fleet.ErrInvalid, "%s %q", what, name)
		}
		if i == 0 {
			continue // "" is allowed
		}
		for what, operation := range optional {
			require.ErrorIs(t, operation(t.Context(), name), fleet.ErrInvalid, "%s %q", what, name)
		}
	}
}

func TestValuesThatAreNotAllowedDoNotReachTheEngine(t *testing.T) {
	f, ctx := unreached(), t.Context()
	set := f.Set("set", 1)
	for _, r := range []fleet.Record{{}, {TTL: -time.Hour}, {TTL: fleet.MinTTL - 1}, {TTL: time.Hour, Due: -1}} {
		r.Key = "a"
		_, err := set.Create(ctx, r)
		require.ErrorIs(t, err, fleet.ErrInvalid, "%+v", r)
		_, err = set.Update(ctx, r)
		require.ErrorIs(t, err, fleet.ErrInvalid, "%+v", r)
	}
	keep := fleet.Keep{Entries: 1, Bytes: 100, TTL: time.Hour}
	require.ErrorIs(t, f.Append(ctx, "g", "l", fleet.Entry{}, keep), fleet.ErrInvalid)
	for _, keep := range []fleet.Keep{{Bytes: 1, TTL: time.Hour}, {Entries: 1, Bytes: -1, TTL: time.Hour}, {Entries: 1, Bytes: 1, TTL: fleet.MinTTL - 1}} {
		require.ErrorIs(t, f.Append(ctx, "g", "l", fleet.Entry{Seq: 1}, keep), fleet.ErrInvalid, "%+v", keep)
	}
	for _, limit := range []int{0, -1} {
		_, err := set.Due(ctx, 0, limit)
		require.ErrorIs(t, err, fleet.ErrInvalid)
		_, err = set.List(ctx, "g", "", limit)
		require.ErrorIs(t, err, fleet.ErrInvalid)
		_, err = f.After(ctx, "g", "l", 0, limit)
		require.ErrorIs(t, err, fleet.ErrInvalid)
	}
	large := make([]byte, fleet.MaxData+1)
	r := fleet.Record{Key: "large", Data: large, TTL: time.Hour}
	_, err := set.Create(ctx, r)
	require.ErrorIs(t, err, fleet.ErrTooLarge)
	_, err = set.Update(ctx, r)
	require.ErrorIs(t, err, fleet.ErrTooLarge)
	require.ErrorIs(t, f.Append(ctx, "g", "l", fleet.Entry{Seq: 1, Data: large}, keep), fleet.ErrTooLarge)
}
