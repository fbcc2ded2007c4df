package keep

import (
	_ "github.com/go-playground/validator/v10"
	_ "github.com/invopop/jsonschema"
	_ "github.com/labstack/echo/v4"
	_ "github.com/labstack/echo/v4/middleware"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "github.com/stretchr/testify/assert"
	_ "github.com/stretchr/testify/require"
	_ "go.uber.org/goleak"
	_ "golang.org/x/time/rate"
	_ "golang.org/x/tools/txtar"
	_ "pgregory.net/rapid"
)
