package limits

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcpkit/mcpkit-go/fleet"
)

const (
	rateFormat = 1

	// How long a bucket is remembered that does not become full sooner.
	longestLife = 30 * 24 * time.Hour

	// Replicas of which each tries as often as this meet at a key before one of them gives up.
	conflictsInARow = 10
)

// shared counts for all replicas of a fleet. The calls of one key that wait for the engine at the
// same time are counted together, so they do not get into each other's way.
type shared struct {
	mu      sync.Mutex
	waiting map[string][]chan<- decision // by key, while a goroutine asks the engine; guarded by mu
}

type decision struct {
	wait time.Duration
	err  error
}

// A bucket is filled at a rate, up to the burst.
type bucket struct {
	rate  rate.Limit
	burst int
}

// A level is how full a bucket is, as the record of the fleet has it.
type level struct {
	Left float64   `json:"left"`
	At   time.Time `json:"at"`
}

var errContended = errors.New("limits: other replicas count the same key all the time")

// take returns 0 if the key may go now, and counts it. Otherwise it returns how long to wait.
func (s *shared) take(ctx context.Context, f *fleet.Fleet, key string, b bucket) (time.Duration, error) {
	decided := make(chan decision, 1)
	s.mu.Lock()
	if s.waiting == nil {
		s.waiting = map[string][]chan<- decision{}
	}
	others, busy := s.waiting[key]
	s.waiting[key] = append(others, decided)
	s.mu.Unlock()
	if !busy {
		// Ends when nobody waits; each operation of the engine is limited.
		go s.serve(context.Background(), f, key, b)
	}
	select {
	case d := <-decided:
		return d.wait, d.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// serve decides for all that wait for a key.
func (s *shared) serve(ctx context.Context, f *fleet.Fleet, key string, b bucket) {
	for {
		s.mu.Lock()
		calls := s.waiting[key]
		if len(calls) == 0 {
			delete(s.waiting, key)
			s.mu.Unlock()
			return
		}
		s.waiting[key] = nil
		s.mu.Unlock()
		granted, wait, err := b.take(ctx, f.Set("rates", rateFormat), fleet.Digest(key), len(calls))
		for i, decided := range calls {
			if i < granted {
				decided <- decision{}
			} else {
				decided <- decision{wait, err}
			}
		}
	}
}

// take takes up to n from the bucket, and returns how long to wait for more. Times are those of the
// replicas; a replica whose clock is behind does not fill the bucket.
func (b bucket) take(ctx context.Context, set *fleet.Set, key string, n int) (granted int, wait time.Duration, err error) {
	for range conflictsInARow {
		now := time.Now().Round(0)
		l := level{Left: float64(b.burst), At: now}
		stored, err := set.Get(ctx, key)
		switch {
		case err == nil:
			err = json.Unmarshal(stored.Data, &l)
		case errors.Is(err, fleet.ErrNotFound):
			err = nil
		}
		if err != nil {
			return 0, 0, err
		}
		if now.After(l.At) {
			l.Left += now.Sub(l.At).Seconds() * float64(b.rate)
			l.At = now
		}
		l.Left = min(l.Left, float64(b.burst))
		granted = min(n, int(l.Left))
		wait = b.until(1 - (l.Left - float64(granted)))
		if granted == 0 {
			return 0, wait, nil
		}
		l.Left -= float64(granted)
		data, err := json.Marshal(l)
		if err != nil {
			return 0, 0, err
		}
		// The record is not needed when the bucket is full. Clocks may differ by a minute.
		life := min(b.until(float64(b.burst)-l.Left), longestLife) + time.Minute
		r := fleet.Record{Key: key, Data: data, Revision: stored.Revision, TTL: life}
		if stored.Revision == 0 {
			_, err = set.Create(ctx, r)
		} else {
			_, err = set.Update(ctx, r)
		}
		if err == nil {
			return granted, wait, nil
		}
		if !errors.Is(err, fleet.ErrConflict) && !errors.Is(err, fleet.ErrExists) && !errors.Is(err, fleet.ErrNotFound) {
			return 0, 0, err
		}
	}
	return 0, 0, errContended
}

// until returns how long it takes to fill in so much.
func (b bucket) until(amount float64) time.Duration {
	seconds := amount / float64(b.rate)
	if b.rate == 0 || seconds > math.MaxInt64/2/float64(time.Second) {
		return Forever
	}
	return max(time.Duration(seconds*float64(time.Second)), 1)
}
