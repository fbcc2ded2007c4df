package fleettest

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// engineText has the scripts, and says what they consist of.
//
//go:embed engine.txt
var engineText string

const longName = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// scripts returns the scripts by name.
func scripts() map[string][]string {
	all := map[string][]string{}
	for _, section := range strings.Split(engineText, "\n== ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		for line := range strings.Lines(text) {
			line = strings.ReplaceAll(strings.TrimSpace(line), "NAME", longName)
			switch {
			case strings.Contains(line, "KEY"):
				all[name] = append(all[name], each(line)...)
			case line != "" && line[0] != '#':
				all[name] = append(all[name], line)
			}
		}
	}
	return all
}

// each returns a line for each of many keys in each of many sets.
func each(line string) (all []string) {
	for _, set := range []string{"set", "Set", "set-", "a", "A", "a-", "-a", "ab"} {
		for _, key := range []string{"a", "A", "aa", "b", "a-", "-a", "_", "-", "0", "a_b"} {
			all = append(all, strings.NewReplacer("SET", set, "KEY", key).Replace(line))
		}
	}
	return all
}

// A player runs a script.
type player struct {
	store
	t         *testing.T
	at        func(i int) fleet.Engine
	turn      int
	stored    map[string]fleet.Record // as it was last stored, by set and key
	revisions map[string][]uint64     // of all times
}

func (s store) play(t *testing.T, lines []string) {
	p := &player{store: s, t: t, at: s.replicas(t), stored: map[string]fleet.Record{}, revisions: map[string][]uint64{}}
	for _, line := range lines {
		if d, ok := strings.CutPrefix(line, "wait "); ok {
			p.wait(t, duration(d))
			continue
		}
		operation, want, once := strings.Cut(line, " -> ")
		if !once {
			operation, want, _ = strings.Cut(line, " ~> ")
		}
		got := ""
		run := func() bool {
			got = p.run(strings.Fields(operation))
			return got == want || once
		}
		p.until(t, run)
		require.Equal(t, want, got, line)
	}
}

// run runs an operation at the next replica, and returns its outcome.
func (p *player) run(fields []string) string {
	p.turn++
	e, ctx := p.at(p.turn), p.t.Context()
	o := map[string]string{
		"set": "set", "group": "", "data": "", "ttl": "1h", "due": "0s", "limit": "9", "within": "0s", "after": "", "rev": "last",
		"entries": "1000", "bytes": "100000",
	}
	switch fields[0] {
	case "append", "after":
		o["group"], o["limit"] = "group", "99"
	case "delete":
		o["rev"] = "0"
	}
	words := []string{}
	for _, field := range fields {
		if option, value, ok := strings.Cut(field, "="); ok {
			o[option] = value
		} else {
			words = append(words, field)
		}
	}
	name, seq := strings.Join(words[1:min(2, len(words))], ""), uint64(0)
	if len(words) == 3 {
		seq = number[uint64](p.t, words[2])
	}
	at := o["set"] + " " + name
	r := fleet.Record{
		Key: name, Group: o["group"], Data: []byte(o["data"]), TTL: duration(o["ttl"]), Due: duration(o["due"]), Revision: p.revision(at, o["rev"]),
	}
	switch words[0] {
	case "create":
		revision, err := e.Create(ctx, o["set"], r)
		return p.keep(at, r, revision, err)
	case "update":
		revision, err := e.Update(ctx, o["set"], r)
		r.Group = p.stored[at].Group
		return p.keep(at, r, revision, err)
	case "delete":
		return outcome(e.Delete(ctx, o["set"], name, r.Revision))
	case "get":
		got, err := e.Get(ctx, o["set"], name)
		return p.keys(o["set"], []fleet.Record{got}, err)
	case "due":
		all, err := e.Due(ctx, o["set"], duration(o["within"]), number[int](p.t, o["limit"]))
		return p.keys(o["set"], all, err)
	case "list":
		all, err := e.List(ctx, o["set"], name, o["after"], number[int](p.t, o["limit"]))
		return p.keys(o["set"], all, err)
	case "count":
		n, err := e.Count(ctx, o["set"], strings.TrimPrefix(name, "all"))
		require.NoError(p.t, err)
		return strconv.Itoa(n)
	case "append":
		keep := fleet.Keep{Entries: number[int](p.t, o["entries"]), Bytes: number[int](p.t, o["bytes"]), TTL: duration(o["ttl"])}
		return outcome(e.Append(ctx, o["group"], name, fleet.Entry{Seq: seq, Data: []byte(o["data"])}, keep))
	case "after":
		all, err := e.After(ctx, o["group"], name, seq, number[int](p.t, o["limit"]))
		return entries(all, err)
	case "drop":
		return outcome(e.Drop(ctx, name))
	}
	panic("unknown operation " + words[0])
}

func number[T int | uint64](t testing.TB, text string) T {
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err)
	return T(n)
}

func duration(text string) time.Duration {
	if text == "now" {
		return fleet.AtOnce
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

// revision returns the revision that a word stands for.
func (p *player) revision(at, word string) uint64 {
	all := p.revisions[at]
	switch {
	case word == "max":
		return math.MaxUint64
	case word == "0":
		return 0
	case len(all) == 0:
		return 1 // of a record that never was
	case word == "first":
		return all[0]
	case word == "1":
		return all[len(all)-1] + 1
	case word == "-1":
		return all[max(len(all)-2, 0)]
	}
	return all[len(all)-1]
}

// keep notes what was stored.
func (p *player) keep(at string, r fleet.Record, revision uint64, err error) string {
	if err == nil {
		require.NotZero(p.t, revision)
		require.NotContains(p.t, p.revisions[at], revision, "a revision identifies the content")
		if all := p.revisions[at]; len(all) > 0 && p.stored[at].Revision == r.Revision {
			require.Greater(p.t, revision, r.Revision, "it grows")
		}
		r.Revision, r.Due = revision, 0
		p.stored[at] = r
		p.revisions[at] = append(p.revisions[at], revision)
	}
	return outcome(err)
}

// keys returns the keys of records, which must be as they were stored.
func (p *player) keys(set string, all []fleet.Record, err error) string {
	if err != nil {
		return outcome(err)
	}
	text := []string{}
	for _, r := range all {
		same(p.t, p.stored[set+" "+r.Key], r)
		text = append(text, r.Key)
	}
	return orDot(text)
}

func orDot(all []string) string {
	if len(all) == 0 {
		return "."
	}
	return strings.Join(all, " ")
}

// same requires that got is what was stored as want.
func same(t testing.TB, want, got fleet.Record) {
	t.Helper()
	require.Positive(t, got.TTL)
	require.LessOrEqual(t, got.TTL, want.TTL+2*time.Second)
	require.True(t, bytes.Equal(want.Data, got.Data), "%d and %d bytes", len(want.Data), len(got.Data))
	want.TTL, want.Data, want.Due = got.TTL, got.Data, 0
	require.Equal(t, want, got)
}

// entries returns numbers and data of entries.
func entries(all []fleet.Entry, err error) string {
	if err != nil {
		return outcome(err)
	}
	text := []string{}
	for _, e := range all {
		text = append(text, fmt.Sprintf("%d:%s", e.Seq, e.Data))
	}
	return orDot(text)
}

// outcome returns the word for an error.
func outcome(err error) string {
	for word, known := range map[string]error{
		"missing": fleet.ErrNotFound, "exists": fleet.ErrExists, "conflict": fleet.ErrConflict, "large": fleet.ErrTooLarge,
	} {
		if errors.Is(err, known) {
			return word
		}
	}
	if err != nil {
		return err.Error()
	}
	return "ok"
}
