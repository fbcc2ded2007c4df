// Package after is the server built with mcpkit.
package after

// docs:begin after

import (
	"slices"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Weather forecasts the weather.
type Weather struct {
	_ mcpkit.Info `name:"weather" version:"1.0.0"`
	_ struct {
		Forecast mcpkit.Tool `hints:"readonly"`
	}
}

// ForecastInput says where and for how long.
type ForecastInput struct {
	// The name of the city.
	City string `json:"city" validate:"min=1"`
	// How many days.
	Days int `json:"days,omitempty" default:"3" validate:"min=1,max=7"`
}

// A Forecast has one word for each day.
type Forecast struct {
	City string   `json:"city"`
	Days []string `json:"days"`
}

// Forecast forecasts the weather of a city.
func (*Weather) Forecast(in ForecastInput) Forecast {
	return Forecast{in.City, slices.Repeat([]string{"sunny"}, in.Days)}
}

// docs:end after
