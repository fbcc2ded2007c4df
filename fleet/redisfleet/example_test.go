package redisfleet_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/redisfleet"
)

// An application has a client already, and closes it after the engine.
func ExampleNew() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
	defer client.Close()
	engine := redisfleet.New(client, &redisfleet.Options{Prefix: "trips"})
	defer engine.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := engine.Ping(ctx); err != nil {
		fmt.Println("Redis is not there yet; the engine goes on trying")
	}
}

// A program that knows the URL only. The import of redisfleet makes it known.
func ExampleOpen() {
	engine, err := fleet.Open(context.Background(), "redis://localhost:6379/0?prefix=trips")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(engine.Close())
	// Output: <nil>
}
