// Package work implements the tools of the benchmark, so that the servers differ only in their
// framework.
package work

import (
	"strings"
	"sync"
)

// URI is the resource that clients subscribe to.
const URI = "bench://resource"

// AddInput is the input of add.
type AddInput struct {
	A int `json:"a"`
	B int `json:"b"`
}

// AddOutput is the output of add.
type AddOutput struct {
	Sum int `json:"sum"`
}

// Add adds.
func Add(in AddInput) AddOutput { return AddOutput{in.A + in.B} }

// EchoInput is the input of echo.
type EchoInput struct {
	Text string `json:"text"`
}

// Filter is a condition on one field.
type Filter struct {
	Field string `json:"field"`
	Op    string `json:"op" validate:"oneof=eq ne lt gt"`
	Value string `json:"value"`
}

// SearchInput is the input of search.
type SearchInput struct {
	Query  string   `json:"query" validate:"min=1"`
	Limit  int      `json:"limit,omitempty" default:"10" validate:"min=1,max=100"`
	Tags   []string `json:"tags,omitempty"`
	Filter *Filter  `json:"filter,omitempty"`
}

// Hit is one result of search.
type Hit struct {
	ID      int      `json:"id"`
	Title   string   `json:"title"`
	URL     string   `json:"url"`
	Score   float64  `json:"score"`
	Tags    []string `json:"tags"`
	Snippet string   `json:"snippet"`
}

// SearchOutput is the output of search.
type SearchOutput struct {
	Hits []Hit `json:"hits"`
}

var hits = makeHits()

func makeHits() []Hit {
	list := make([]Hit, 100)
	for i := range list {
		list[i] = Hit{
			ID: 1000 + i, Title: "A note about benchmarks", URL: "https://example.com/notes/" + strings.Repeat("x", 8),
			Score: 0.5 + float64(i)/256, Tags: []string{"go", "speed"},
			Snippet: "What is measured is what \"every server\" must do, and what it does beside.",
		}
	}
	return list
}

// Search returns in.Limit hits without searching.
func Search(in SearchInput) SearchOutput { return SearchOutput{hits[:in.Limit]} }

// BlobInput is the input of blob.
type BlobInput struct {
	N int `json:"n" validate:"min=0,max=4194304"`
}

// blob is made when it is first used, since it is no part of a program's start.
var blob = sync.OnceValue(func() string { return strings.Repeat(sentence, 4<<20/len(sentence)+1) })

const sentence = "All work and no play makes a benchmark dull. "

// Blob returns n bytes of text.
func Blob(in BlobInput) string { return blob()[:in.N] }

// The schemas, for servers that need them written by hand.
const (
	AddSchema = `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},` +
		`"required":["a","b"],"additionalProperties":false}`
	AddOutSchema = `{"type":"object","properties":{"sum":{"type":"integer"}},` +
		`"required":["sum"],"additionalProperties":false}`
	EchoSchema = `{"type":"object","properties":{"text":{"type":"string"}},` +
		`"required":["text"],"additionalProperties":false}`
	BlobSchema = `{"type":"object","properties":{"n":{"type":"integer","minimum":0,"maximum":4194304}},` +
		`"required":["n"],"additionalProperties":false}`
	SearchSchema = `{"type":"object","properties":{"query":{"type":"string","minLength":1},` +
		`"limit":{"type":"integer","minimum":1,"maximum":100,"default":10},` +
		`"tags":{"type":"array","items":{"type":"string"}},` +
		`"filter":{"type":"object","properties":{"field":{"type":"string"},` +
		`"op":{"type":"string","enum":["eq","ne","lt","gt"]},"value":{"type":"string"}},` +
		`"required":["field","op","value"],"additionalProperties":false}},` +
		`"required":["query"],"additionalProperties":false}`
	SearchOutSchema = `{"type":"object","properties":{"hits":{"type":"array","items":{"type":"object",` +
		`"properties":{"id":{"type":"integer"},"title":{"type":"string"},"url":{"type":"string"},` +
		`"score":{"type":"number"},"tags":{"type":"array","items":{"type":"string"}},"snippet":{"type":"string"}},` +
		`"required":["id","title","url","score","tags","snippet"],"additionalProperties":false}}},` +
		`"required":["hits"],"additionalProperties":false}`
)
